//! The index of what was said: what it finds, and that it is whole whatever happens to the process.

use acpd_eventlog::{
    Appender, Batch, EventLog, Hit, IndexUpdate, NewSession, Options, SearchQuery, SearchText, TurnText,
};
use proptest::prelude::*;
use rusqlite::Connection;
use std::path::Path;
use tempfile::TempDir;

fn open(dir: &Path) -> EventLog {
    EventLog::open(dir, super::options()).expect("the log opens")
}

fn new(id: &str, created_by: Option<&str>) -> NewSession {
    let created_by = created_by.map(str::to_owned);
    NewSession { id: id.into(), owner: "host".into(), created_by, ..NewSession::default() }
}

async fn session(log: &EventLog, id: &str, events: u64) -> Appender {
    let mut appender = log.create(new(id, None)).await.expect("a new session");
    let mut batch = Batch::new();
    (0..events).for_each(|_| batch.push(1, 0, b"event"));
    appender.append_durable(batch).await.expect("room on the disk");
    appender
}

/// Ends a session: no host has it any more.
async fn end(appender: Appender) {
    let mut batch = Batch::new();
    batch.update_index(IndexUpdate { owner: Some(None), ended: Some(true), ..IndexUpdate::default() });
    appender.append_final(batch).await.expect("room on the disk");
}

fn turn(seq: u64, at_ms: i64, text: &str) -> TurnText {
    TurnText { seq, at_ms, text: text.to_owned() }
}

fn query(text: &str) -> SearchQuery {
    let text = SearchText::parse(text).expect("words");
    SearchQuery { text, created_by: None, after: None, limit: 10 }
}

fn places(hits: &[Hit]) -> Vec<(&str, u64)> {
    hits.iter().map(|hit| (hit.session.id.as_str(), hit.seq)).collect()
}

async fn found(log: &EventLog, text: &str) -> Vec<(String, u64)> {
    let hits = log.search(query(text)).await.expect("readable");
    places(&hits).into_iter().map(|(id, seq)| (id.to_owned(), seq)).collect()
}

fn owned(places: &[(&str, u64)]) -> Vec<(String, u64)> {
    places.iter().map(|(id, seq)| ((*id).to_owned(), *seq)).collect()
}

// issue 11, deliver 3: all words, whole, the last turn first; a beginning with `*`
#[tokio::test]
async fn turns_are_found_by_their_words() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let _live = (session(&log, "a", 9).await, session(&log, "b", 9).await);
    let turns = vec![turn(1, 10, "Fix the NAÏVE parser"), turn(4, 30, "and its tests, naive")];
    assert!(log.index("a", (0, 8), turns).await.unwrap());
    assert!(log.index("b", (0, 9), vec![turn(2, 20, "tests of \"naive\" OR parser*")]).await.unwrap());
    for (text, expected) in [
        ("naive", &[("a", 4), ("b", 2), ("a", 1)][..]),
        ("Naïve PARSER", &[("b", 2), ("a", 1)]),
        ("test", &[]),
        ("test* naive", &[("a", 4), ("b", 2)]),
        ("fix tests", &[]),
        ("or", &[("b", 2)]),
        ("words:naive", &[]),
    ] {
        assert_eq!(found(&log, text).await, owned(expected), "{text}");
    }
    assert_eq!((log.indexed("a").await.unwrap(), log.indexed("c").await.unwrap()), (Some(8), None));
    log.close().await;
}

// issue 11, deliver 3: bounded pages without a gap, of the caller's own sessions
#[tokio::test]
async fn pages_are_full() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    for (id, by) in [("a", "ci"), ("b", "other"), ("c", "ci")] {
        let mut new = new(id, Some(by));
        (0..10).for_each(|_| new.events.push(1, 0, b"event"));
        drop(log.create(new).await.unwrap());
        // Many of the same time.
        let turns = (1..=10).map(|seq| turn(seq, seq as i64 / 3, "word")).collect();
        assert!(log.index(id, (0, 10), turns).await.unwrap());
    }
    let mut query = SearchQuery { created_by: Some("ci".to_owned()), limit: 7, ..query("word") };
    let mut all: Vec<Hit> = Vec::new();
    loop {
        let page = log.search(query.clone()).await.unwrap();
        query.after = page.last().map(|hit| hit.place);
        all.extend(page.clone());
        if page.len() < 7 {
            break;
        }
    }
    let seen: std::collections::BTreeSet<_> = places(&all).into_iter().collect();
    assert_eq!((all.len(), seen.len()), (20, 20));
    assert!(all.iter().all(|hit| hit.session.created_by.as_deref() == Some("ci")));
    assert!(all.is_sorted_by_key(|hit| std::cmp::Reverse(hit.at_ms)));
    log.close().await;
}

// issue 11, deliver 3: nothing twice, and nothing that is not in the log
#[tokio::test]
async fn what_is_indexed_is_not_indexed_again() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let _live = session(&log, "a", 5).await;
    let one = || vec![turn(1, 0, "one")];
    assert!(log.index("a", (0, 3), one()).await.unwrap());
    for (after, upto) in [(0, 3), (2, 4), (3, 6)] {
        assert!(!log.index("a", (after, upto), one()).await.unwrap(), "{after}");
    }
    assert!(!log.index("unknown", (0, 1), one()).await.unwrap());
    assert_eq!(found(&log, "one").await, owned(&[("a", 1)]));
    log.close().await;
}

// issue 11, deliver 3: deleted with its session; a deleted session is not found while it is being removed
#[tokio::test]
async fn a_deleted_session_leaves_nothing_in_the_index() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    for id in ["a", "b"] {
        end(session(&log, id, 200).await).await;
        let turns = (1..=100).map(|seq| turn(seq, seq as i64, &format!("word {id}"))).collect();
        assert!(log.index(id, (0, 200), turns).await.unwrap());
    }
    log.delete("a", "host").await.unwrap();
    assert_eq!(found(&log, "a").await, []);
    // A session that comes later has nothing of it.
    end(session(&log, "a", 2).await).await;
    assert_eq!((found(&log, "a").await.len(), log.indexed("a").await.unwrap()), (0, Some(0)));
    let count = |table: &str| -> i64 {
        let file = Connection::open(crate::index(dir.path())).unwrap();
        file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    while count("turn") == 200 {
        tokio::task::yield_now().await;
    }
    log.close().await;
    let (turns, docs) = (count("turn"), count("search_docsize"));
    // The writer may have been closed before all was removed; the next start goes on.
    assert!((100..200).contains(&turns) && turns == docs, "{turns} {docs}");
    let log = open(dir.path());
    assert_eq!(found(&log, "b").await.len(), 10);
    log.close().await;
}

// issue 11, deliver 3: search = false drops the index, and the next start with it begins anew
#[tokio::test]
async fn without_search_the_index_goes() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    end(session(&log, "a", 5).await).await;
    assert!(log.index("a", (0, 5), vec![turn(1, 0, "word")]).await.unwrap());
    assert_eq!(log.unindexed(None, 10).await.unwrap(), []);
    log.close().await;
    let without = Options { search: false, ..super::options() };
    let log = EventLog::open(dir.path(), without).unwrap();
    assert!(!log.has_index());
    log.close().await;
    let log = open(dir.path());
    assert_eq!((found(&log, "word").await, log.indexed("a").await.unwrap()), (vec![], Some(0)));
    let waiting = log.unindexed(None, 10).await.unwrap();
    assert_eq!(waiting.iter().map(|one| (one.id.as_str(), one.last_seq)).collect::<Vec<_>>(), [("a", 5)]);
    log.close().await;
}

// contract 7.3: an index that another version made of other words is dropped, and made again as any that is missing; once
#[tokio::test]
async fn an_index_of_other_words_is_made_again() {
    let dir = TempDir::new().unwrap();
    let index = async |log: &EventLog| log.index("a", (0, 5), vec![turn(1, 0, "Straße")]).await;
    let log = open(dir.path());
    end(session(&log, "a", 5).await).await;
    assert!(index(&log).await.unwrap());
    log.close().await;
    let log = open(dir.path());
    assert_eq!(
        (found(&log, "STRASSE").await.len(), log.indexed("a").await.unwrap()),
        (1, Some(5)),
        "it stays"
    );
    log.close().await;
    // As versions left it that noted nothing.
    let file = Connection::open(crate::index(dir.path())).unwrap();
    file.execute("DELETE FROM searched WHERE session NOT IN (SELECT row FROM session)", []).unwrap();
    drop(file);
    let log = open(dir.path());
    assert_eq!((found(&log, "STRASSE").await, log.indexed("a").await.unwrap()), (vec![], Some(0)));
    assert_eq!(log.unindexed(None, 10).await.unwrap().len(), 1);
    assert!(index(&log).await.unwrap());
    assert_eq!(found(&log, "strasse").await.len(), 1);
    log.close().await;
}

/// All of the index, as SQLite has it.
fn stored(dir: &Path) -> (Vec<(i64, i64)>, i64, i64) {
    let file = Connection::open(crate::index(dir)).expect("the log can be used");
    let mut select = file.prepare("SELECT key, at_ms FROM turn ORDER BY key").expect("the log can be used");
    let turns = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("the log can be used");
    let turns = turns.collect::<Result<_, _>>().expect("the log can be used");
    let one = |sql| file.query_row(sql, [], |row| row.get(0)).expect("the log can be used");
    let whole: String = one_text(&file, "PRAGMA integrity_check");
    assert_eq!(whole, "ok");
    (turns, one("SELECT count(*) FROM search_docsize"), one("SELECT sum(seq) FROM searched"))
}

fn one_text(file: &Connection, sql: &str) -> String {
    file.query_row(sql, [], |row| row.get(0)).expect("the log can be used")
}

const DIR: &str = "SEARCH_TEST_DIR";
const SESSIONS: u64 = 4;
const TURNS: u64 = 40;

/// Each turn is two events; its words follow from its number.
fn text(session: u64, turn: u64) -> String {
    format!(
        "all session{session} turn{turn} {} {}",
        if turn.is_multiple_of(2) { "even" } else { "odd" },
        "x".repeat(9)
    )
}

/// Catches up with the log, as a host does, in pieces of a few turns.
async fn catch_up(log: &EventLog) {
    let mut place = None;
    while let Some(next) = log.unindexed(place.take(), 1).await.expect("the log can be used").pop() {
        let session: u64 = next.id.parse().expect("the log can be used");
        let mut after =
            log.indexed(&next.id).await.expect("the log can be used").expect("the log can be used");
        while after < next.last_seq {
            let upto = next.last_seq.min(after + 6);
            let turns = (after / 2 + 1..=upto / 2).map(|n| turn(2 * n - 1, n as i64, &text(session, n)));
            assert!(log.index(&next.id, (after, upto), turns.collect()).await.expect("the log can be used"));
            after = upto;
        }
        place = Some((next.updated_ms, next.id));
    }
}

async fn written(dir: &Path) {
    let log = open(dir);
    for id in 1..=SESSIONS {
        end(session(&log, &id.to_string(), 2 * TURNS).await).await;
    }
    log.close().await;
}

/// Not a test of its own: what a child does that is killed.
#[tokio::test]
async fn part() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let log = open(Path::new(&dir));
    catch_up(&log).await;
    log.close().await;
}

/// Runs the part and kills it after so many microseconds.
#[expect(clippy::disallowed_methods, reason = "a child that is to be killed, and reaped here")]
fn kill_after(dir: &Path, micros: u64) {
    use std::process::Stdio;
    let exe = std::env::current_exe().expect("it is ours");
    let mut command = std::process::Command::new(exe);
    command.args([&*crate::test_name(module_path!(), "part"), "--exact", "--test-threads=1"]).env(DIR, dir).stdout(Stdio::null());
    let mut child = command.spawn().expect("it is ours");
    // tidy: allow sleep, the moment of the kill is the thing under test
    std::thread::sleep(std::time::Duration::from_micros(micros));
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    // issue 11, deliver 3: kill -9 at any instruction; what was caught up with is what an unkilled process has
    #[test]
    fn a_killed_index_is_caught_up_with(kills in prop::collection::vec(1_000_u64..60_000, 1..5)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (killed, whole) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        runtime.block_on(async {
            written(killed.path()).await;
            written(whole.path()).await;
            let log = open(whole.path());
            catch_up(&log).await;
            log.close().await;
        });
        kills.iter().for_each(|micros| kill_after(killed.path(), *micros));
        runtime.block_on(async {
            let logs = [open(killed.path()), open(whole.path())];
            catch_up(&logs[0]).await;
            for words in ["even all", "session3 turn17", "turn1*", "odd xxxxxxxxx session2"] {
                let mut hits = Vec::new();
                for log in &logs {
                    let mut all = log.search(SearchQuery { limit: 1000, ..query(words) }).await.unwrap();
                    all.sort_by_key(|hit| (hit.session.id.clone(), hit.seq));
                    hits.push(owned(&places(&all)));
                }
                assert_eq!(hits[0], hits[1], "{words}");
            }
            for log in logs {
                log.close().await;
            }
        });
        let (turns, docs, upto) = stored(killed.path());
        assert_eq!(docs, (SESSIONS * TURNS) as i64);
        assert_eq!((turns, docs, upto), stored(whole.path()));
    }
}
