//! Measures the index of what was said on this machine: how large it is beside its log, how long a piece of it takes, and how
//! long a search takes. The log is made up: sessions of a few turns, of pieces of text and tool calls.
//!
//! `cargo run --release -p acpd-eventlog --example search [DIR [SESSIONS]]`; without DIR in a temporary directory. What is left
//! in DIR is a state directory for `acpd sessions list --state-dir DIR` and `acpd sessions search`.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::path::Path;
use std::time::{Duration, Instant};

use acpd_eventlog::{Batch, EventLog, IndexUpdate, NewSession, Options, SearchQuery, SearchText, TurnText};
use rusqlite::Connection;

type Failure = Box<dyn std::error::Error>;

const TURNS: u64 = 3;
/// Pieces of an answer, of a dozen words each.
const PIECES: u64 = 40;
const CALLS: u64 = 4;
const WORDS: u64 = 30_000;

/// xorshift, so that each run makes the same.
struct Made(u64);

impl Made {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    /// Few words are common, most are rare.
    fn word(&mut self) -> String {
        let rank = (WORDS as f64).powf(self.next(1_000_000) as f64 / 1e6) as u64;
        let mut letters = Made(rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let length = 2 + letters.next(3 + (rank as f64).ln() as u64);
        (0..length).map(|_| char::from(b'a' + letters.next(26) as u8)).collect()
    }

    fn words(&mut self, count: u64) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let temporary = tempfile::tempdir()?;
    let mut args = std::env::args_os().skip(1);
    let dir = args.next().map_or_else(|| temporary.path().to_owned(), Into::into);
    let sessions = args.next().map_or(Ok(10_000), |count| count.to_string_lossy().parse())?;
    let log = EventLog::open(&dir, Options::default())?;
    let (mut made, mut longest, mut indexing) = (Made(7), Duration::ZERO, Duration::ZERO);
    for n in 0..sessions {
        let (id, turns, last) = session(&log, &mut made, n).await?;
        let began = Instant::now();
        log.index(&id, (0, last), turns).await?;
        longest = longest.max(began.elapsed());
        indexing += began.elapsed();
    }
    println!("{sessions} sessions, {TURNS} turns each");
    println!("a piece of {TURNS} turns: {:?}, the longest {longest:?}", indexing / sessions as u32);
    for (what, text) in
        [("a common word", common()), ("two words", Made(3).words(2)), ("none", "x1y2z3".into())]
    {
        println!("{what}: {:?}", searched(&log, &text).await?);
    }
    log.close().await;
    let (stored, index) = sizes(&dir)?;
    println!("log {stored} bytes, index {index} bytes: {:.1} %", index as f64 / stored as f64 * 100.0);
    Ok(())
}

fn common() -> String {
    let mut one = Made(1);
    (0..50).map(|_| one.word()).min_by_key(String::len).unwrap_or_default()
}

async fn searched(log: &EventLog, text: &str) -> Result<(usize, Duration), Failure> {
    let text = SearchText::parse(text)?;
    let began = Instant::now();
    let hits = log.search(SearchQuery { text, created_by: None, after: None, limit: 20 }).await?;
    Ok((hits.len(), began.elapsed()))
}

async fn session(log: &EventLog, made: &mut Made, n: u64) -> Result<(String, Vec<TurnText>, u64), Failure> {
    let id = format!("01a20000-0000-7000-8000-{n:012x}");
    let at = 1_790_000_000_000 + n as i64 * 60_000;
    let title = made.words(5);
    let info = format!(
        r#"{{"nativeSessionId":"native-{n}","title":"{title}","model":"large","mode":"default","client":"acpd run","runs":1,"terminationInfo":{{"reason":"completed","terminatedBy":"client","endedAt":"2026-11-23T03:11:14.599Z","cause":"client_close","initiator":"acpd run","turnActive":false,"lastStopReason":"end_turn","leaked":false,"escalation":["stdin_closed"],"startedAt":"2026-11-23T03:11:14.590Z","lastEventSeq":7}}}}"#
    );
    let new = NewSession {
        id: id.clone(),
        agent: "example".into(),
        cwd: format!("/src/project{}", n % 50),
        owner: "measure".into(),
        created_ms: at,
        info: info.into_bytes(),
        ..NewSession::default()
    };
    let mut appender = log.create(new).await?;
    let mut turns = Vec::new();
    for turn in 1..=TURNS {
        let (text, batch) = said(&id, made, turn, at);
        turns.push(TurnText { seq: appender.next_seq(), at_ms: at + turn as i64, text });
        appender.append(batch).await?;
    }
    let last = appender.next_seq();
    let mut end = Batch::new();
    end.push(9, at, br#"{"reason":"completed","terminatedBy":"client","endedAt":"2026-11-23T03:11:14.599Z","turnActive":false,"leaked":false}"#);
    end.update_index(IndexUpdate {
        updated_ms: at,
        ended: Some(true),
        owner: Some(None),
        ..IndexUpdate::default()
    });
    appender.append_final(end).await?;
    Ok((id, turns, last))
}

/// A turn as it is logged, and what is indexed of it.
fn said(id: &str, made: &mut Made, turn: u64, at: i64) -> (String, Batch) {
    let mut batch = Batch::new();
    let mut text = made.words(40);
    let prompt = format!(r#"{{"turn":{turn},"by":"acpd run","prompt":[{{"type":"text","text":"{text}"}}]}}"#);
    batch.push(3, at + turn as i64, prompt.as_bytes());
    let update = |update: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{id}","update":{{{update}}}}}}}"#
        )
    };
    for piece in 0..PIECES {
        let words = made.words(12);
        let chunk =
            format!(r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{words} "}}"#);
        batch.push(4, at, update(&chunk).as_bytes());
        text.extend(["\n", &words]);
        if piece % (PIECES / CALLS) == 0 {
            let (title, output) = (made.words(4), made.words(120));
            let call = format!(
                r#""sessionUpdate":"tool_call","toolCallId":"call-{piece}","title":"{title}","kind":"read","status":"pending""#
            );
            batch.push(4, at, update(&call).as_bytes());
            let done = format!(
                r#""sessionUpdate":"tool_call_update","toolCallId":"call-{piece}","status":"completed","content":[{{"type":"content","content":{{"type":"text","text":"{output}"}}}}]"#
            );
            batch.push(4, at, update(&done).as_bytes());
            text.extend(["\n", &title]);
        }
    }
    batch.push(
        6,
        at,
        format!(r#"{{"turn":{turn},"stopReason":"end_turn","result":{{"stopReason":"end_turn"}}}}"#)
            .as_bytes(),
    );
    (text, batch)
}

/// Bytes of the files of sessions, and of all tables of their words.
fn sizes(dir: &Path) -> Result<(i64, i64), Failure> {
    let file = Connection::open(dir.join("index-1.db"))?;
    let sum = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0));
    let stored = sum("SELECT sum(bytes) FROM session")?;
    // A row of `turn` stands in its table and in the index on its key.
    let index = sum("SELECT sum(length(block)) FROM search_data")?
        + sum("SELECT sum(length(sz)) + 8 * count(*) FROM search_docsize")?
        + sum("SELECT 36 * count(*) FROM turn")?
        + sum("SELECT 12 * count(*) FROM searched")?;
    Ok((stored, index))
}
