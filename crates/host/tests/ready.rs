//! Whether a host says in time that it can take on no work. Alone in its process, which the size limit is for.

use acpd_eventlog::{Batch, EventLog, NewSession, Options, WriteError};
use acpd_host::{Host, HostFile, HostOptions, TaskScope, TerminalSettings, Unready};
use acpd_supervisor::{KeeperCommand, Supervisor};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::time::Instant;

async fn host(state: &Path, options: Options) -> Host {
    let host_file = HostFile::create(state).expect("it can be used");
    let log = EventLog::open(state, options).expect("it can be used");
    let scope = TaskScope::default();
    // Nothing is started here.
    let keeper = KeeperCommand { program: "no-keeper".into(), args: Vec::new() };
    let supervisor = Supervisor::new(keeper, host_file.id(), scope.clone());
    let (agents, terminal) = (Default::default(), TerminalSettings::default());
    let options = HostOptions { agents, finder: None, cwd: state.to_owned(), terminal, continuity: None };
    Host::open(options, log, supervisor, scope, host_file, state).await
}

async fn close(host: Host) {
    host.clone().shutdown("test").await;
    host.finished().await;
}

const SECOND: Duration = Duration::from_secs(1);
/// The time that a busy machine is given to say what is known.
const PATIENCE: Duration = Duration::from_secs(60);

/// The answer within a second, and when it is not the one from a moment before: what is asked for a second later is the truth.
/// A machine that is busy with other things may be the one that is late, so what took too long is tried again, and so is what was not
/// known in time.
async fn fresh(host: &Host, wanted: impl Fn(&Result<(), Unready>) -> bool) -> Result<(), Unready> {
    let since = Instant::now();
    let mut late = Vec::new();
    loop {
        let asked = Instant::now();
        let answer = host.check().await;
        if asked.elapsed() >= SECOND {
            late.push(asked.elapsed());
            assert!(late.len() < 3, "{late:?}: {answer:?}");
        }
        let is_known = !matches!(answer, Err(Unready::Silent { .. })) || asked - since > PATIENCE;
        if is_known && (wanted(&answer) || asked - since > SECOND) {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

// issue 5, deliver 5: the truth within a second: a full disk, a file or directory that is gone, room again, the end
#[tokio::test]
async fn a_host_that_cannot_record_says_so_within_a_second() {
    // Else the limit is said by a signal that ends the process.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false))).unwrap();
    let state = tempfile::tempdir().unwrap();
    let host = host(state.path(), Options::default()).await;
    known(&host).await.unwrap();
    full(&host, state.path()).await;
    files(&host, state.path()).await;
    unseen(&host, state.path()).await;
    host.clone().shutdown("test").await;
    let closing = host.check().await;
    assert!(matches!(closing, Err(Unready::ShuttingDown)), "{closing:?}");
    host.finished().await;
    limited().await;
    many().await;
}

/// The first answer that is known.
async fn known(host: &Host) -> Result<(), Unready> {
    fresh(host, |_| true).await
}

/// Nothing can be written, then it can.
async fn full(host: &Host, state: &Path) {
    let files = || std::fs::read_dir(state).expect("a directory").count();
    let (before, unlimited) = (files(), getrlimit(Resource::Fsize));
    setrlimit(Resource::Fsize, Rlimit { current: Some(0), ..unlimited }).expect("it is lower");
    let full = fresh(host, Result::is_err).await;
    setrlimit(Resource::Fsize, unlimited).expect("it was that before");
    assert!(matches!(full, Err(Unready::Log(WriteError::DiskFull { .. }))), "{full:?}");
    fresh(host, Result::is_ok).await.expect("there is room again");
    assert_eq!(files(), before, "nothing is left of it");
}

/// No session needs the index: it may be locked, and be gone. Without the directory of sessions none can begin.
async fn files(host: &Host, state: &Path) {
    let (index, aside) = (state.join("index-1.db"), state.join("aside"));
    let other = locked(&index);
    let answer = fresh(host, Result::is_err).await;
    assert!(answer.is_ok(), "for as long as one looks: {answer:?}");
    other.execute_batch("ROLLBACK").expect("it was locked");
    for replaced in [false, true] {
        std::fs::rename(&index, &aside).expect("it is there");
        if replaced {
            std::fs::copy(&aside, &index).expect("it is there");
        }
        let answer = fresh(host, Result::is_err).await;
        assert!(answer.is_ok(), "for as long as one looks: {answer:?}");
        std::fs::rename(&aside, &index).expect("it is there");
    }
    let sessions = state.join("sessions");
    std::fs::rename(&sessions, &aside).expect("it is there");
    let lost = fresh(host, Result::is_err).await;
    assert!(matches!(lost, Err(Unready::Log(WriteError::Io { .. }))), "{lost:?}");
    std::fs::rename(&aside, &sessions).expect("nothing was put in its place");
    fresh(host, Result::is_ok).await.expect("it is back");
}

/// A connection of somebody else, who has the database locked.
fn locked(database: &Path) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(database).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    other
}

/// Its place among the hosts was removed: other processes would take its sessions for lost.
async fn unseen(host: &Host, state: &Path) {
    let (hosts, aside) = (state.join("hosts"), state.join("aside"));
    std::fs::rename(&hosts, &aside).expect("it is there");
    let unseen = fresh(host, Result::is_err).await;
    assert!(matches!(unseen, Err(Unready::Unseen { .. })), "{unseen:?}");
    std::fs::rename(&aside, &hosts).expect("it is there");
    fresh(host, Result::is_ok).await.expect("it is back");
}

/// The limit of the log itself is as good as a full disk.
async fn limited() {
    let state = tempfile::tempdir().expect("it can be used");
    let log = EventLog::open(state.path(), Options::default()).expect("it can be used");
    let mut events = Batch::new();
    events.push(1, 0, &[7; 4096]);
    let new = NewSession { id: "s".into(), owner: "other".into(), events, ..NewSession::default() };
    drop(log.create(new).await.expect("there is room"));
    log.close().await;
    let host = host(state.path(), Options { max_bytes: Some(1024), ..Options::default() }).await;
    let full = known(&host).await;
    assert!(matches!(full, Err(Unready::Log(WriteError::DiskFull { .. }))), "{full:?}");
    close(host).await;
}

/// Many who ask cost what one costs.
async fn many() {
    let state = tempfile::tempdir().expect("it can be used");
    let host = host(state.path(), Options::default()).await;
    let began = computed();
    for _ in 0..100_000 {
        known(&host).await.expect("it can be used");
    }
    // Each by itself would compute for longer than that in all.
    let took = computed() - began;
    assert!(took < Duration::from_secs(5), "{took:?}");
    close(host).await;
}

/// The time that this process has computed, with all its threads: what else the machine does is no part of it.
fn computed() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("it is not negative")
}
