//! What a directory is by what is in it, whoever begins it at the same time.

use super::*;
use crate::options::Durability;
use crate::schema;
use tempfile::TempDir;

// issue 29: what is in a directory decides
#[test]
fn the_form_is_the_one_that_is_there() {
    let marker = DatabaseFile::Marker { format: FILES_FORMAT };
    for (has_sessions, database, form) in [
        (false, DatabaseFile::Missing, None),
        (false, DatabaseFile::Empty, None),
        (false, DatabaseFile::Database, Some(LogForm::Database)),
        (false, marker, Some(LogForm::Files)),
        (true, DatabaseFile::Missing, Some(LogForm::Files)),
        (true, DatabaseFile::Empty, Some(LogForm::Files)),
        (true, DatabaseFile::Database, Some(LogForm::Files)),
        (true, marker, Some(LogForm::Files)),
    ] {
        assert_eq!(Contents { has_sessions, database }.form(), form, "{has_sessions} {database:?}");
    }
}

fn found(dir: &Path) -> DatabaseFile {
    DatabaseFile::find(dir).expect("it is looked at")
}

const MARKER: DatabaseFile = DatabaseFile::Marker { format: FILES_FORMAT };

// issue 29: a directory of session files has its marker before it has sessions, and again if somebody has deleted it
#[test]
fn the_marker_is_put_back() {
    let dir = TempDir::new().unwrap();
    let state = dir.path().join("new");
    settle(&state).unwrap();
    assert!(found(&state) == MARKER && !layout::sessions(&state).exists());
    settle(&state).expect("before there are sessions");
    fs::create_dir(layout::sessions(&state)).unwrap();
    for leave in [|file: &Path| fs::remove_file(file), |file: &Path| fs::write(file, "")] {
        leave(&state.join("acpd.db")).unwrap();
        settle(&state).unwrap();
        assert_eq!(found(&state), MARKER);
    }
}

// issue 29: a part of a database without it is no empty directory; nothing is made or removed until somebody has decided
#[test]
fn a_part_of_a_missing_database_is_told() {
    for ending in ["-wal", "-journal"] {
        let dir = TempDir::new().unwrap();
        let database = dir.path().join("acpd.db");
        let part = beside(&database, ending);
        fs::write(&part, "").unwrap();
        assert_eq!(Contents::find(dir.path()).unwrap().form(), None, "nothing is in it");
        fs::write(&part, "what was written last").unwrap();
        for refused in [Contents::find(dir.path()).map(drop), settle(dir.path())] {
            let error = refused.expect_err(ending);
            assert!(matches!(&error, OpenError::Orphaned { path, .. } if *path == part), "{error:?}");
            let told = error.to_string();
            assert!(told.contains("acpd.db, which is missing") && told.contains(ending), "{told}");
        }
        assert_eq!(fs::read(&part).unwrap(), b"what was written last");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        fs::write(&database, "somebody's").unwrap();
        assert_eq!(Contents::find(dir.path()).unwrap().form(), Some(LogForm::Database));
        fs::remove_file(&database).unwrap();
        fs::create_dir(layout::sessions(dir.path())).unwrap();
        settle(dir.path()).expect("session files need no database");
    }
}

// issue 29: a database beside session files is left as it is, whoever made it
#[test]
fn a_database_beside_session_files_is_left_alone() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(layout::sessions(dir.path())).unwrap();
    let database = dir.path().join("acpd.db");
    fs::write(&database, "somebody's").unwrap();
    settle(dir.path()).unwrap();
    assert_eq!(fs::read(&database).unwrap(), b"somebody's");
}

// issue 29: a database is not opened as a log, and the error says what to do; nothing is made
#[test]
fn a_database_is_to_be_migrated() {
    let dir = TempDir::new().unwrap();
    let database = dir.path().join("acpd.db");
    fs::write(&database, "somebody's").unwrap();
    let error = settle(dir.path()).unwrap_err();
    assert!(matches!(&error, OpenError::Unmigrated { path } if *path == database), "{error:?}");
    assert!(error.to_string().contains("run acpd migrate"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

// issue 29: a directory of a later format is refused, and left as it is
#[test]
fn a_newer_directory_is_refused() {
    let dir = TempDir::new().unwrap();
    settle(dir.path()).unwrap();
    let marker = dir.path().join("acpd.db");
    let mut page = fs::read(&marker).unwrap();
    page[63] += 1;
    fs::write(&marker, &page).unwrap();
    let error = settle(dir.path()).unwrap_err();
    let (newer, known) = (FILES_FORMAT + 1, FILES_FORMAT);
    assert!(
        matches!(&error, OpenError::Newer { path, found, supported } if *path == marker && (*found, *supported) == (newer, known)),
        "{error:?}"
    );
    assert_eq!(fs::read(&marker).unwrap(), page);
}

// issue 29: where no log is, a look finds none and makes none; a directory that cannot be is none either
#[test]
fn a_look_makes_nothing() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    for missing in ["missing", "file/below"] {
        let missing = dir.path().join(missing);
        assert_eq!(Contents::find(&missing).unwrap().form(), None);
        assert!(!missing.exists());
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

// issue 29: of several that begin a directory at once, older ones among them, all that can go on have one log
#[test]
fn all_use_what_the_first_has_begun() {
    for _ in 0..20 {
        let dir = TempDir::new().unwrap();
        let start = std::sync::Barrier::new(6);
        let (older, newer) = std::thread::scope(|scope| {
            let newer: Vec<_> = (0..5)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        settle(dir.path())
                    })
                })
                .collect();
            let older = scope.spawn(|| {
                start.wait();
                schema::open_database(dir.path(), &DATABASE, Durability::Process).map(drop)
            });
            let newer: Vec<_> = newer.into_iter().map(|one| one.join().expect("it ends")).collect();
            (older.join().expect("it ends"), newer)
        });
        let is_expected = |newer: &Result<(), OpenError>| match older {
            Ok(()) => matches!(newer, Err(OpenError::Unmigrated { .. })),
            Err(_) => newer.is_ok(),
        };
        assert!(newer.iter().all(is_expected), "{older:?}: {newer:?}");
        assert!(matches!(older, Ok(()) | Err(OpenError::Newer { .. })), "{older:?}");
    }
}
