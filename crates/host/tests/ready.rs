//! Whether a host says in time that it can take on no work. Alone in its process, which the size limit is for.

use acpd_eventlog::{EventLog, Options, WriteError};
use acpd_host::{Host, HostFile, HostOptions, TaskScope, TerminalSettings, Unready};
use acpd_supervisor::{KeeperCommand, Supervisor};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
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

/// The answer within a second, and when it is not the one from a moment before.
async fn fresh(host: &Host, wanted: impl Fn(&Result<(), Unready>) -> bool) -> Result<(), Unready> {
    let since = Instant::now();
    loop {
        let asked = Instant::now();
        let answer = host.check().await;
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}: {answer:?}", asked.elapsed());
        if wanted(&answer) || since.elapsed() > Duration::from_secs(1) {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

// issue 5, deliver 5: the truth within a second: a full disk, a locked file, a file or directory that is gone, room again,
// the end
#[tokio::test]
async fn a_host_that_cannot_record_says_so_within_a_second() {
    let state = tempfile::tempdir().unwrap();
    let host = host(state.path(), Options::default()).await;
    host.check().await.unwrap();
    let files = || std::fs::read_dir(state.path()).unwrap().count();
    let before = files();

    // Else the limit is said by a signal that ends the process.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false))).unwrap();
    let unlimited = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(4096), ..unlimited }).unwrap();
    let full = fresh(&host, Result::is_err).await;
    setrlimit(Resource::Fsize, unlimited).unwrap();
    assert!(matches!(full, Err(Unready::Log(WriteError::DiskFull { .. }))), "{full:?}");
    fresh(&host, Result::is_ok).await.unwrap();
    assert_eq!(files(), before, "nothing is left of it");

    // Somebody keeps the file locked for longer than anybody who asks would wait.
    let other = rusqlite::Connection::open(state.path().join("acpd.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = fresh(&host, Result::is_err).await;
    assert!(matches!(locked, Err(Unready::Locked { .. })), "{locked:?}");
    other.execute_batch("ROLLBACK").unwrap();
    fresh(&host, Result::is_ok).await.unwrap();

    // It was removed under us, or another put in its place.
    let (db, aside) = (state.path().join("acpd.db"), state.path().join("aside"));
    for replaced in [false, true] {
        std::fs::rename(&db, &aside).unwrap();
        if replaced {
            std::fs::copy(&aside, &db).unwrap();
        }
        let lost = fresh(&host, Result::is_err).await;
        assert!(matches!(lost, Err(Unready::Log(WriteError::Io { .. }))), "{lost:?}");
        std::fs::rename(&aside, &db).unwrap();
        fresh(&host, Result::is_ok).await.unwrap();
    }

    // Its place among the hosts was removed: other processes would take its sessions for lost.
    let (hosts, aside) = (state.path().join("hosts"), state.path().join("aside"));
    std::fs::rename(&hosts, &aside).unwrap();
    let unseen = fresh(&host, Result::is_err).await;
    assert!(matches!(unseen, Err(Unready::Unseen { .. })), "{unseen:?}");
    std::fs::rename(&aside, &hosts).unwrap();
    fresh(&host, Result::is_ok).await.unwrap();

    host.clone().shutdown("test").await;
    let closing = host.check().await;
    assert!(matches!(closing, Err(Unready::ShuttingDown)), "{closing:?}");
    host.finished().await;
    limited().await;
    many().await;
}

/// The limit of the log itself is as good as a full disk.
async fn limited() {
    let state = tempfile::tempdir().expect("it can be used");
    let host = host(state.path(), Options { max_bytes: Some(96 * 1024), ..Options::default() }).await;
    let full = host.check().await;
    assert!(matches!(full, Err(Unready::Log(WriteError::DiskFull { .. }))), "{full:?}");
    close(host).await;
}

/// Many who ask cost what one costs.
async fn many() {
    let state = tempfile::tempdir().expect("it can be used");
    let host = host(state.path(), Options::default()).await;
    let began = Instant::now();
    for _ in 0..100_000 {
        host.check().await.expect("it can be used");
    }
    // Each by itself would take longer than that in all.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    close(host).await;
}
