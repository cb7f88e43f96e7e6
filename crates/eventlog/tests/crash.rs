//! Real processes: killed at any moment, sharing one file, and on a full disk.
//!
//! The child is this same test binary, told by its environment to play a part.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use acpd_eventlog::{
    Appender, Batch, EventLog, IndexUpdate, NewSession, Options, Renamed, Unchanged, WriteError,
};
use std::sync::OnceLock;
use tempfile::TempDir;

const PART: &str = "EVENTLOG_TEST_PART";
const DIR: &str = "EVENTLOG_TEST_DIR";

fn open(dir: &Path) -> EventLog {
    EventLog::open(dir, Options::default()).expect("the log opens")
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
        "fill" => fill(log).await,
        "moved" => move_for_ever(log).await,
        "renamed" => rename_for_ever(log).await,
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
        assert!(log.rename(&format!("id-{}", next - 1), seen, renamed).await.expect("room on the disk"));
        say(&next.to_string());
    }
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
        command.args(["part", "--exact", "--nocapture", "--test-threads=1"]);
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

/// Two sessions write until there is no room; then both say their last words.
async fn fill(log: EventLog) {
    let mut ended = Vec::new();
    let mut past = appender(&log, "past").await;
    past.append_durable(batch(1, 20)).await.expect("room on the disk");
    let mut last = Batch::new();
    last.update_index(IndexUpdate { updated_ms: 1, owner: Some(None), ..IndexUpdate::default() });
    past.append_final(last).await.expect("room on the disk");
    let (mut big, mut small) = (appender(&log, "big").await, appender(&log, "small").await);
    let error = loop {
        let (next, also) = (big.next_seq(), small.next_seq());
        let written = big.append_durable(batch(next, 100)).await;
        let beside = small.append_durable(batch(also, 1)).await;
        if let (Err(error), Err(_)) = (written, beside) {
            break error;
        }
    };
    assert!(matches!(error, WriteError::DiskFull { .. }), "{error:?}");
    for appender in [big, small] {
        let committed = appender.committed().seq();
        let mut last = batch(committed + 1, 1);
        let (ended_now, owner) = (Some(true), Some(None));
        let info = Some(vec![b'i'; 20_000]);
        last.update_index(IndexUpdate {
            updated_ms: 9,
            ended: ended_now,
            owner,
            info,
            ..IndexUpdate::default()
        });
        ended.push(appender.append_final(last).await.map(|range| (committed + 1, range)));
    }
    for result in ended {
        match result {
            Ok((expected, range)) if range == (expected..=expected) => say("ended"),
            other => say(&format!("{other:?}")),
        }
    }
    // What ended before can be deleted: that is what makes room.
    say(&format!("deleted {:?}", log.delete("past").await));
    // Reading goes on.
    check(&log, "big").await;
    say("read");
}

// issue 2, deliver 4: a full disk ends the writing session with a clear reason and not the daemon
#[tokio::test]
async fn a_full_disk_leaves_room_for_the_last_words() {
    // In blocks of 512 bytes or 1 KiB, as the shell likes it.
    for blocks in [800, 3_000, 20_000, 80_000] {
        let dir = TempDir::new().unwrap();
        let mut part = Part::start("fill", dir.path(), Some(blocks));
        for expected in ["ended", "ended", "deleted", "read"] {
            let heard = part.hear();
            // The smallest is no larger than what a deletion and the last words write.
            let heard = heard.as_deref().map(|heard| match heard {
                "deleted Ok(())" => "deleted",
                other if other.starts_with("deleted") && blocks == 800 => "deleted",
                other => other,
            });
            assert_eq!(heard, Some(expected), "with {blocks} blocks");
        }
        assert!(part.child.wait().unwrap().success());
        let log = open(dir.path());
        for id in ["big", "small"] {
            let last = check(&log, id).await;
            let row = log.get(id).await.unwrap().unwrap();
            assert_eq!((row.ended, row.owner, row.last_seq, row.info.len()), (true, None, last, 20_000));
            // With room again it goes on.
            let mut appender = log.reopen(id, "host").await.unwrap();
            appender.append_durable(batch(last + 1, 5)).await.unwrap();
            drop(appender);
            assert_eq!(check(&log, id).await, last + 5);
        }
    }
}

// issue 2, deliver 4: only the session that can not be written ends
#[tokio::test]
async fn at_the_size_limit_only_what_does_not_fit_ends() {
    let dir = TempDir::new().unwrap();
    let limit = 2 << 20;
    let log = EventLog::open(dir.path(), Options { max_bytes: Some(limit), ..Options::default() }).unwrap();
    let (mut big, mut small) = (appender(&log, "big").await, appender(&log, "small").await);
    small.append_durable(batch(1, 1)).await.unwrap();
    let mut huge = Batch::new();
    huge.push(1, 0, &noise()[..limit as usize]);
    // Both may be in one group; the small one must not suffer.
    big.append(huge).await.unwrap();
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
    assert!(reserve() < full && reserve() > 0, "some of it was released for last words: {}", reserve());
    log.close().await;
    assert_eq!(reserve(), full, "kept again, since the disk itself has room");
    let size = std::fs::metadata(dir.path().join("acpd.db")).unwrap().len();
    assert!(size < limit + (1 << 20), "{size} bytes");
}
