//! Waiting for a lock that another process holds on the file.
//!
//! A lock is no damage: a backup, or a look by hand, lets go again. So the threads of an open log wait without end, and the
//! log says that they do; only a log that is just being opened or closed gives up after a while.
//! What waits meanwhile is bounded by the queue, and holds those back that write.

use parking_lot::Mutex;
use std::cell::RefCell;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Attempts after which a log that is being opened or closed gives up: about ten seconds.
const BOUND: i32 = 20 + 5_000;
/// A lock that was held for so long is reported.
const REPORTED: Duration = Duration::from_millis(500);
/// And the operator is told after so long.
const LOGGED: Duration = Duration::from_secs(2);
/// The byte of the shared memory file that the writer of a database has locked (sqlite.org/walformat.html).
const WRITER_BYTE: u64 = 120;

/// A lock on the log's file that another process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignLock {
    /// For how long the log has waited for it.
    pub held: Duration,
    /// The process, where the operating system tells.
    pub pid: Option<u32>,
}

/// What the threads of one log have in common that wait for locks.
#[derive(Debug)]
pub(crate) struct LockWatch {
    database: PathBuf,
    /// The wait of the writer, if it waits now.
    wait: Mutex<Option<Wait>>,
    is_bounded: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Instant,
    is_logged: bool,
    attempts: i32,
}

/// What a thread of an open log waits by.
struct Waiter {
    watch: Arc<LockWatch>,
    is_writer: bool,
}

thread_local! {
    /// SQLite's handler is given nothing but a number.
    static WAITER: RefCell<Option<Waiter>> = const { RefCell::new(None) };
}

impl LockWatch {
    pub(crate) fn new(database: &Path) -> Arc<Self> {
        let (wait, is_bounded) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { database: database.to_owned(), wait, is_bounded })
    }

    /// Has this thread wait without end; the wait of the writer is reported.
    pub(crate) fn enter(self: &Arc<Self>, is_writer: bool) {
        WAITER.set(Some(Waiter { watch: Arc::clone(self), is_writer }));
    }

    /// From now on no lock is waited for without end.
    pub(crate) fn bound(&self) {
        self.is_bounded.store(true, Ordering::Relaxed);
    }

    /// The writer is done with something: whatever it waited for, it has.
    pub(crate) fn clear(&self) {
        if let Some(wait) = self.wait.lock().take()
            && wait.is_logged
        {
            tracing::warn!(after_s = wait.since.elapsed().as_secs(), "the event log is written again");
        }
    }

    /// The lock that the writer waits for, if it has for a while.
    pub(crate) fn lock(&self) -> Option<ForeignLock> {
        let held = (*self.wait.lock())?.since.elapsed();
        (held >= REPORTED).then(|| ForeignLock { held, pid: self.holder() })
    }

    /// Looks at the wait of the writer.
    fn see(&self, attempts: i32) {
        let mut wait = self.wait.lock();
        let wait = wait.get_or_insert_with(|| Wait { since: now(), is_logged: false, attempts });
        wait.attempts = attempts;
        if !wait.is_logged && wait.since.elapsed() >= LOGGED {
            wait.is_logged = true;
            let pid = self.holder();
            tracing::warn!(
                pid,
                "another process holds the event log's lock; what is to be written waits for it"
            );
        }
    }

    /// By the system's list of locks: opening the file here would drop SQLite's own locks on it.
    fn holder(&self) -> Option<u32> {
        let mut path = OsString::from(&self.database);
        path.push("-shm");
        let inode = std::fs::metadata(path).ok()?.ino();
        let own = std::process::id();
        holders(&std::fs::read_to_string("/proc/locks").ok()?, inode).find(|pid| *pid != own)
    }
}

/// The processes that have locked the writer's byte of a file, by proc_locks(5).
fn holders(locks: &str, inode: u64) -> impl Iterator<Item = u32> {
    locks.lines().filter_map(move |line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, file, first, last] = words[..] else { return None };
        let is_it = file.rsplit(':').next()?.parse() == Ok(inode);
        let last = last.parse().unwrap_or(u64::MAX);
        (is_it && (first.parse().ok()?..=last).contains(&WRITER_BYTE)).then(|| pid.parse().ok())?
    })
}

/// SQLite's own waits grow to 100 ms, in which a busy neighbour takes the lock many times: ours stay short for as long as
/// that may be one. False: it gives up.
pub(crate) fn wait_for_lock(attempt: i32) -> bool {
    let is_bounded = WAITER.with_borrow(|waiter| {
        let Some(Waiter { watch, is_writer }) = waiter else { return true };
        if *is_writer {
            watch.see(attempt);
        }
        watch.is_bounded.load(Ordering::Relaxed)
    });
    if attempt >= BOUND && is_bounded {
        return false;
    }
    #[expect(clippy::disallowed_methods, reason = "a lock of another process has no event to wait for")]
    std::thread::sleep(pause(attempt));
    true
}

fn pause(attempt: i32) -> Duration {
    match attempt {
        // So that tests come to the bound.
        _ if cfg!(test) => Duration::from_micros(10),
        ..20 => Duration::from_micros(100),
        20..BOUND => Duration::from_millis(2),
        _ => Duration::from_millis(10),
    }
}

#[expect(clippy::disallowed_methods, reason = "a shell: it measures a wait")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, EventLog, NewSession, Options};
    use rusqlite::Connection;

    impl LockWatch {
        fn attempts(&self) -> i32 {
            self.wait.lock().map_or(0, |wait| wait.attempts)
        }
    }

    fn batch(text: &[u8]) -> Batch {
        let mut batch = Batch::new();
        batch.push(1, 1, text);
        batch
    }

    /// A log with a session, and the lock of another process on its file.
    async fn locked(dir: &Path) -> (EventLog, crate::Appender, Connection) {
        let log = EventLog::open(dir, Options::default()).unwrap();
        let new = NewSession { id: "a".into(), owner: "host".into(), ..NewSession::default() };
        let appender = log.create(new).await.unwrap();
        let other = Connection::open(dir.join("acpd.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        (log, appender, other)
    }

    async fn until(look: impl Fn() -> bool) {
        while !look() {
            tokio::task::yield_now().await;
        }
    }

    // contract 6: a lock of another process is waited for however long it is held, and is reported; nothing is lost
    #[tokio::test]
    async fn a_lock_of_another_process_is_waited_for() {
        let dir = tempfile::TempDir::new().unwrap();
        let (log, mut appender, other) = locked(dir.path()).await;
        assert_eq!(log.foreign_lock(), None);
        let held = async {
            until(|| log.shared.locks.attempts() > 2 * BOUND && log.foreign_lock().is_some()).await;
            let read = log.get("a").await.unwrap().unwrap();
            drop(other);
            read.last_seq
        };
        let (written, while_held) = tokio::join!(appender.append_durable(batch(b"event")), held);
        assert_eq!((written.unwrap(), while_held), (1..=1, 0), "it is read meanwhile");
        log.committed().await.unwrap();
        assert_eq!(log.foreign_lock(), None);
        assert_eq!(log.get("a").await.unwrap().unwrap().last_seq, 1);
        log.close().await;
    }

    // contract 6: the reader of a file that another process has for itself waits, too
    #[tokio::test]
    async fn a_read_waits_for_a_lock_as_well() {
        let dir = tempfile::TempDir::new().unwrap();
        let (log, appender, other) = locked(dir.path()).await;
        drop((other, appender));
        log.close().await;
        let other = Connection::open(dir.path().join("acpd.db")).unwrap();
        other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT").unwrap();
        let watch = LockWatch::new(&dir.path().join("acpd.db"));
        let (database, waits) = (dir.path().join("acpd.db"), Arc::clone(&watch));
        let read = std::thread::spawn(move || {
            waits.enter(true);
            let reader = crate::schema::open_reader(&database)?;
            reader.query_row("SELECT count(*) FROM session", [], |row| row.get::<_, i64>(0))
        });
        until(|| watch.attempts() > BOUND).await;
        drop(other);
        assert_eq!(read.join().unwrap().unwrap(), 1);
    }

    // contract 6: a log that is closed, or a host that shuts down, does not wait for ever
    #[tokio::test]
    async fn a_log_that_closes_gives_up() {
        let dir = tempfile::TempDir::new().unwrap();
        let (log, mut appender, other) = locked(dir.path()).await;
        let closes = async {
            until(|| log.shared.locks.attempts() > BOUND).await;
            log.bound_waits();
        };
        let (written, ()) = tokio::join!(appender.append_durable(batch(b"event")), closes);
        assert!(matches!(written, Err(crate::WriteError::Busy { .. })), "{written:?}");
        log.close().await;
        drop(other);
    }

    // contract 6: who holds the lock is read from the system's list
    #[test]
    fn the_holder_of_the_lock_is_found() {
        let locks = "1: POSIX  ADVISORY  READ 41 fe:00:7 123 123\n2: POSIX  ADVISORY  WRITE 42 fe:00:7 120 120\n\
                     3: POSIX  ADVISORY  WRITE 43 fe:00:8 120 120\n4: FLOCK  ADVISORY  WRITE 44 fe:00:7 0 EOF\n\
                     5: POSIX  ADVISORY  WRITE 45 fe:00:7 123 123\n6: POSIX  ADVISORY  WRITE 46 fe:00:7 0 EOF\n\
                     6: -> POSIX  ADVISORY  WRITE 47 fe:00:7 120 120\n";
        assert_eq!(holders(locks, 7).collect::<Vec<_>>(), [42, 46]);
    }
}
