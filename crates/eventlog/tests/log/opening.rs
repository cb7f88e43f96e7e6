//! Opening: fresh and shared directories.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Barrier;

use acpd_eventlog::{EventLog, NewSession, OpenError};
use tempfile::TempDir;

fn open(dir: &TempDir) -> Result<EventLog, OpenError> {
    EventLog::open(dir.path(), super::options())
}

// contract 6: several processes may share a state directory, from the first moment on
#[test]
fn a_fresh_directory_can_be_opened_by_many_at_once() {
    for _ in 0..10 {
        let dir = TempDir::new().unwrap();
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    open(&dir).map(drop).unwrap();
                });
            }
        });
    }
}

// SC-1: file modes 0700 and 0600
#[tokio::test]
async fn nobody_else_can_read_it() {
    let parent = TempDir::new().unwrap();
    let dir = parent.path().join("state/acpd");
    let log = EventLog::open(&dir, super::options()).unwrap();
    log.create(NewSession { id: "a".into(), owner: "host".into(), ..NewSession::default() }).await.unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(dir.clone()), 0o700);
    let mut left = vec![dir];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(path.clone()), expected, "{}", path.display());
            left.extend(Some(path).filter(|path| path.is_dir()));
        }
    }
}

// contract 6, contract 7.1: what of a state directory cannot be used is named, and not the directory alone
#[test]
fn what_is_in_the_way_is_named() {
    let directories = ["acpd.db-new", "acpd.db-open", "index-1.db-open", "hooks.db-open"];
    for name in ["sessions", "sessions/.new", "redo"].into_iter().chain(directories) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if directories.contains(&name) {
            fs::create_dir(&path).unwrap();
        } else {
            fs::write(&path, "").unwrap();
        }
        let error = open(&dir).expect_err(name);
        let errors = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let told = errors.map(|error| error.to_string()).collect::<Vec<_>>().join(": ");
        assert!(told.contains(path.to_str().unwrap()), "{told}");
    }
}

// contract 6: an unusable state directory is named
#[test]
fn a_directory_that_can_not_be_made_is_named() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = EventLog::open(&dir.path().join("file/state"), super::options()).err().unwrap();
    assert!(matches!(&error, OpenError::Directory { path, .. } if path.ends_with("file/state")), "{error:?}");
}

// UP-5: a crash in the middle of the first start leaves something that the next start can finish
#[test]
fn an_empty_file_is_a_fresh_one() {
    let dir = TempDir::new().unwrap();
    fs::write(crate::index(dir.path()), "").unwrap();
    // As earlier versions began.
    fs::write(dir.path().join("acpd.db"), "").unwrap();
    open(&dir).unwrap();
}
