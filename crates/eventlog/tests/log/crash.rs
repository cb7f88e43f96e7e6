//! Real processes: killed at any moment, sharing one file, and on a full disk.
//!
//! The child is this same test binary, told by its environment to play a part.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use acpd_eventlog::{
    Appender, Batch, EventLog, IndexUpdate, NewSession, Options, Renamed, SearchQuery, SearchText, TurnText,
    Unchanged, WriteError,
};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

const PART: &str = "EVENTLOG_TEST_PART";
const DIR: &str = "EVENTLOG_TEST_DIR";

fn open(dir: &Path) -> EventLog {
    EventLog::open(dir, super::options()).expect("the log opens")
}

/// The payload of an event follows from its number, so that a reader can check it. It cannot be packed, so that what
/// is written needs the room that it seems to need.
fn payload(seq: u64) -> Vec<u8> {
    let noise = noise();
    let start = (seq * 104_729 % (noise.len() as u64 - 3000)) as usize;
    noise[start..start + (seq * 37 % 3000) as usize].to_vec()
}

/// 4 MiB without a pattern, made once by xorshift.
fn noise() -> &'static [u8] {
    static NOISE: OnceLock<Vec<u8>> = OnceLock::new();
    NOISE.get_or_init(|| {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let word = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        (0..512 * 1024).flat_map(word).collect()
    })
}

fn batch(first: u64, count: u64) -> Batch {
    let mut batch = Batch::new();
    (first..first + count).for_each(|seq| batch.push(seq as u16, 0, &payload(seq)));
    batch
}

async fn appender(log: &EventLog, id: &str) -> Appender {
    let new = NewSession { id: id.into(), owner: id.into(), ..NewSession::default() };
    match log.create(new).await {
        Err(WriteError::Exists { .. }) => log.reopen(id, id).await.expect("its host is this part"),
        result => result.expect("a new session"),
    }
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "\n# {line}").expect("somebody reads");
}

/// Not a test of its own: what a child does. Without a part it does nothing.
#[tokio::test]
async fn part() {
    let (Ok(part), Ok(dir)) = (std::env::var(PART), std::env::var(DIR)) else { return };
    let log = open(Path::new(&dir));
    match part.as_str() {
        "moved" => move_for_ever(log).await,
        "renamed" => rename_for_ever(log).await,
        "late" => say_for_ever(log).await,
        id => write_for_ever(log, id).await,
    }
}

async fn write_for_ever(log: EventLog, id: &str) {
    let mut appender = appender(&log, id).await;
    for round in 0_u64.. {
        let next = appender.next_seq();
        let range = match round % 3 {
            0 => appender.append_durable(batch(next, 1)).await,
            1 => appender.append(batch(next, 1 + round % 40)).await,
            _ => appender.append_durable(batch(next, 1 + round % 400)).await,
        };
        match range {
            Ok(_) => say(&appender.committed().seq().to_string()),
            Err(WriteError::TakenOver { .. }) => return,
            Err(error) => panic!("no room on the disk? {error}"),
        }
    }
}

/// Hosts that each adopt the session from the one before; each commit says where the session stands.
async fn move_for_ever(log: EventLog) {
    let stands = |mut batch: Batch, last: u64| {
        batch.update_index(IndexUpdate { position: Some(last), ..IndexUpdate::default() });
        batch
    };
    drop(appender(&log, "moved").await);
    let first = log.get("moved").await.expect("readable").expect("it is there");
    let mut owner = first.owner.expect("it is live");
    for next in first.last_seq + 1.. {
        let last = 3 * next;
        let heir = format!("host-{next}");
        let adopted = log.adopt("moved", &owner, &heir, stands(batch(last - 2, 2), last - 1)).await;
        let mut adopted = adopted.expect("its owner is dead");
        adopted.append_durable(stands(batch(last, 1), last)).await.expect("room on the disk");
        say(&last.to_string());
        owner = heir;
    }
}

/// A session that gets one id after the other.
async fn rename_for_ever(log: EventLog) {
    let mut appender = appender(&log, "id-0").await;
    appender.append_durable(batch(1, 40)).await.expect("room on the disk");
    let (ended, owner) = (Some(true), Some(None));
    let over = IndexUpdate { updated_ms: 0, ended, owner, ..IndexUpdate::default() };
    appender.append_final(Batch::index_only(over)).await.expect("room on the disk");
    for next in 1_i64.. {
        let seen = Unchanged { last_seq: 40, updated_ms: next - 1 };
        let (id, info) = (format!("id-{next}"), next.to_string().into_bytes());
        let renamed = Renamed { id, info, at_ms: next };
        assert!(log.rename(&format!("id-{}", next - 1), "host", seen, renamed).await.expect("room on the disk"));
        say(&next.to_string());
    }
}

/// Turns of one event, of which the first is indexed and no row is written by itself.
async fn say_for_ever(log: EventLog) {
    drop(log);
    let dir = std::env::var(DIR).expect("it is told");
    let options = Options { index_lag: Duration::from_secs(3600), ..super::options() };
    let log = EventLog::open(Path::new(&dir), options).expect("the log opens");
    let mut appender = appender(&log, "late").await;
    for seq in 1.. {
        appender.append_durable(batch(seq, 1)).await.expect("room on the disk");
        if seq == 1 {
            assert!(log.index("late", (0, 1), vec![turn(1)]).await.expect("room on the disk"));
        }
        say(&seq.to_string());
    }
}

fn turn(seq: u64) -> TurnText {
    TurnText { seq, at_ms: 0, text: "needle".to_owned() }
}

struct Part {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Part {
    fn start(part: &str, dir: &Path, file_limit: Option<u32>) -> Self {
        let exe = std::env::current_exe().expect("the path of this test");
        let limit = file_limit.map_or("unlimited".to_owned(), |blocks| blocks.to_string());
        #[expect(clippy::disallowed_methods, reason = "a child that is to be killed, and reaped here")]
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"")).arg(exe);
        let test = if part == "fill" { "filling" } else { "part" };
        command.args([&*crate::test_name(module_path!(), test), "--exact", "--nocapture", "--test-threads=1"]);
        command.env(PART, part).env(DIR, dir).stdout(Stdio::piped());
        let mut child = command.spawn().expect("sh starts");
        let stdout = child.stdout.take().expect("it is piped");
        Self { child, lines: BufReader::new(stdout).lines() }
    }

    /// The next thing that it says.
    fn hear(&mut self) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| Some(line.strip_prefix("# ")?.to_owned()))
    }

    fn kill(mut self) -> u64 {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
        // What was said before the kill is still in the pipe; the last line may be torn.
        let mut last = 0;
        let mut said: Vec<String> = Vec::new();
        while let Some(line) = self.hear() {
            said.push(line);
        }
        said.pop();
        for line in said {
            last = line.parse().expect("a number");
        }
        last
    }
}

/// Every event of the session is what it was, in order; how many there are.
async fn check(log: &EventLog, id: &str) -> u64 {
    let row = log.get(id).await.expect("readable").expect("the session is there");
    let mut cursor = log.cursor(id, 0).await.expect("the session is there");
    let mut expected = 1;
    while let Some(block) = cursor.next().await.expect("readable") {
        for event in block.events() {
            assert_eq!((event.seq, event.kind), (expected, expected as u16));
            assert!(event.payload == payload(expected), "event {expected} changed");
            expected += 1;
        }
    }
    // It may be written by another process meanwhile.
    assert!(row.last_seq < expected);
    expected - 1
}

// UP-5: what was said to be committed survives kill -9; SE: no hole and no double
#[tokio::test]
async fn a_killed_writer_loses_nothing_that_it_reported() {
    let dir = TempDir::new().unwrap();
    let mut total = 0;
    for round in 0..40_u64 {
        let mut part = Part::start("killed", dir.path(), None);
        let patience = 1 + round * round * 7 % 90;
        let mut reported = 0;
        for _ in 0..patience {
            reported = part.hear().expect("it writes").parse().unwrap();
        }
        reported = part.kill().max(reported);
        let log = open(dir.path());
        let there = check(&log, "killed").await;
        assert!(there >= reported && there >= total, "{there} of {reported} events, {total} before");
        total = there;
        log.close().await;
    }
}

// issue 29: what waited to be indexed when a host was killed is derived from its sessions: rows, and which words are missing
#[tokio::test]
async fn a_killed_host_leaves_an_index_that_is_made_up_for() {
    for round in 0..6_u64 {
        let dir = TempDir::new().unwrap();
        let mut part = Part::start("late", dir.path(), None);
        for _ in 0..2 + round * round * 7 % 60 {
            part.hear().expect("it writes");
        }
        let reported = part.kill();
        let log = open(dir.path());
        let rows = log.list(Default::default()).await.unwrap();
        let [row] = &rows[..] else { panic!("one session, and not {rows:?}") };
        assert_eq!((row.id.as_str(), row.owner.as_deref()), ("late", Some("late")));
        assert!(row.last_seq >= reported, "{} of {reported} events", row.last_seq);
        assert_eq!(log.owners().await.unwrap(), ["late"]);
        // Its last words, after which all of it is to be indexed.
        let (ended, owner) = (Some(true), Some(None));
        let over = Batch::index_only(IndexUpdate { ended, owner, ..IndexUpdate::default() });
        let last = log.append_to("late", Some("late"), "next", over).await.unwrap();
        assert_eq!(last, row.last_seq);
        let missing = log.unindexed(None, 10).await.unwrap();
        assert_eq!(missing.iter().map(|one| (one.id.as_str(), one.last_seq)).collect::<Vec<_>>(), [("late", last)]);
        assert_eq!(log.indexed("late").await.unwrap(), Some(1));
        assert!(log.index("late", (1, last), (2..=last).map(turn).collect()).await.unwrap());
        assert_eq!(log.unindexed(None, 10).await.unwrap(), []);
        let text = SearchText::parse("needle").unwrap();
        let hits = log.search(SearchQuery { text, created_by: None, after: None, limit: 10_000 }).await.unwrap();
        let mut found: Vec<u64> = hits.iter().map(|hit| hit.seq).collect();
        found.sort_unstable();
        assert_eq!(found, (1..=last).collect::<Vec<_>>());
        log.close().await;
    }
}

// contract 7.3: a host that is killed while it adopts a session has adopted it with what came along, or not at all
#[tokio::test]
async fn a_killed_host_has_adopted_or_not() {
    for round in 0..20_u64 {
        let dir = TempDir::new().unwrap();
        let mut part = Part::start("moved", dir.path(), None);
        let mut reported = 0;
        for _ in 0..1 + round * round * 7 % 60 {
            reported = part.hear().expect("it adopts").parse().unwrap();
        }
        reported = part.kill().max(reported);
        let log = open(dir.path());
        let row = log.get("moved").await.unwrap().unwrap();
        let there = check(&log, "moved").await;
        assert!(there >= reported, "{there} of {reported} events");
        // Three events for each host, of which two come with the adoption.
        let host = format!("host-{}", there.div_ceil(3));
        assert_eq!((row.owner.as_ref(), row.last_seq, row.position), (Some(&host), there, there));
        assert_ne!(there % 3, 1, "half an adoption");
        let mut adopted = log.adopt("moved", &host, "test", batch(there + 1, 1)).await.unwrap();
        adopted.append_durable(batch(there + 2, 1)).await.unwrap();
        drop(adopted);
        assert_eq!(check(&log, "moved").await, there + 2);
        log.close().await;
    }
}

// design fleet, partition: a process that is killed while it renames leaves the one id or the other, never both and never none
#[tokio::test]
async fn a_killed_process_has_renamed_or_not() {
    for round in 0..20_u64 {
        let dir = TempDir::new().unwrap();
        let mut part = Part::start("renamed", dir.path(), None);
        let mut reported = 0;
        for _ in 0..1 + round * round * 7 % 60 {
            reported = part.hear().expect("it renames").parse().unwrap();
        }
        reported = part.kill().max(reported);
        let log = open(dir.path());
        let rows = log.list(Default::default()).await.unwrap();
        let [row] = &rows[..] else { panic!("one session, and not {rows:?}") };
        let there: u64 = row.id.strip_prefix("id-").and_then(|number| number.parse().ok()).unwrap();
        // The last number that was said does not count, and behind it there can be a name that was not said.
        assert!((reported..=reported + 2).contains(&there), "{there} of {reported} names");
        assert_eq!((&row.info[..], row.updated_ms), (there.to_string().as_bytes(), there as i64));
        assert_eq!(check(&log, &row.id).await, 40);
        log.close().await;
    }
}

// design/continuity.md I5: a host that lives after all, in another process, is refused and leaves nothing
#[tokio::test]
async fn a_host_that_was_taken_for_dead_writes_nothing_more() {
    for round in 0..10 {
        let dir = TempDir::new().unwrap();
        let log = open(dir.path());
        let mut part = Part::start("alive", dir.path(), None);
        for _ in 0..1 + round {
            part.hear().expect("it writes");
        }
        let adopted = log.adopt("alive", "alive", "test", Batch::new()).await.unwrap();
        let stands = adopted.committed().seq();
        // It ends by its refusal, and has said nothing that is not there.
        let mut reported = 0;
        while let Some(said) = part.hear() {
            reported = said.parse().unwrap();
        }
        assert!(part.child.wait().unwrap().success());
        assert!(reported <= stands, "{reported} of {stands} events");
        let row = log.get("alive").await.unwrap().unwrap();
        assert_eq!((row.last_seq, row.owner.as_deref()), (stands, Some("test")));
        drop(adopted);
        assert_eq!(check(&log, "alive").await, stands);
    }
}

// contract 6: several processes may share a state directory
#[tokio::test]
async fn processes_share_the_file() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let mut ours = appender(&log, "ours").await;
    let mut parts = ["one", "two"].map(|id| Part::start(id, dir.path(), None));
    for _ in 0..30 {
        for part in &mut parts {
            part.hear().expect("it writes");
        }
        let next = ours.next_seq();
        ours.append_durable(batch(next, 3)).await.unwrap();
        check(&log, "one").await;
    }
    drop(ours);
    let reported = parts.map(Part::kill);
    assert!(check(&log, "one").await >= reported[0]);
    assert!(check(&log, "two").await >= reported[1]);
    assert_eq!(check(&log, "ours").await, 90);
}

without_power! {
    // issue 29: at a limit on the size of files a session goes on in its next one
    #[tokio::test]
    async fn a_limit_on_the_size_of_files_ends_no_session() {
        let dir = TempDir::new().unwrap();
        // In blocks of 512 bytes or 1 KiB, as the shell likes it.
        let mut part = Part::start("limited", dir.path(), Some(8_000));
        let mut reported = 0;
        while reported < 12_000 {
            reported = part.hear().expect("it writes").parse().unwrap();
        }
        reported = part.kill().max(reported);
        assert!(crate::stored_bytes(dir.path()) > 8_000 * 1024, "more than fits into one file");
        let log = open(dir.path());
        assert!(check(&log, "limited").await >= reported);
        log.close().await;
    }
}

// issue 2, deliver 4: only the session that can not be written ends
#[tokio::test]
async fn at_the_size_limit_only_what_does_not_fit_ends() {
    let dir = TempDir::new().unwrap();
    let limit = 2 << 20;
    let log = EventLog::open(dir.path(), Options { max_bytes: Some(limit), ..super::options() }).unwrap();
    let (mut big, mut small) = (appender(&log, "big").await, appender(&log, "small").await);
    small.append_durable(batch(1, 1)).await.unwrap();
    let mut huge = Batch::new();
    huge.push(1, 0, &noise()[..limit as usize]);
    // Both may be in one group; the small one must not suffer. It is told at once, or by what is committed.
    drop(big.append(huge).await);
    small.append_durable(batch(2, 1)).await.unwrap();
    let error = big.committed().wait_for(1).await.unwrap_err();
    assert!(matches!(error, WriteError::DiskFull { .. }), "{error:?}");
    assert!(matches!(big.append(batch(1, 1)).await, Err(WriteError::DiskFull { .. })), "it stays failed");
    let mut next = 3;
    while small.append_durable(batch(next, 1)).await.is_ok() {
        next += 1;
    }
    let reserve = || std::fs::metadata(dir.path().join("acpd.reserve")).unwrap().len();
    let full = reserve();
    assert!(full >= 1 << 20, "kept for last words: {full} bytes");
    for appender in [big, small] {
        let first = appender.committed().seq() + 1;
        assert_eq!(appender.append_final(batch(first, 1)).await.unwrap(), first..=first);
    }
    assert_eq!(check(&log, "big").await, 1);
    assert_eq!(check(&log, "small").await, next);
    log.close().await;
    assert_eq!(reserve(), full, "nothing of it is needed: the disk itself has room");
    let size = crate::stored_bytes(dir.path());
    assert!(size < limit + (1 << 20), "{size} bytes");
}
