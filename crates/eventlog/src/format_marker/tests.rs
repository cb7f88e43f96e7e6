//! What a marker is to programs of any version, and how it gets its place.

use super::*;
use crate::options::Durability;
use crate::schema::{self, OpenError};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// Names and contents.
fn files(dir: &TempDir) -> Vec<(String, Vec<u8>)> {
    let entries =
        fs::read_dir(dir.path()).expect("it is read").map(|entry| entry.expect("it is read").path());
    let file = |path: PathBuf| {
        (path.file_name().expect("a name").to_string_lossy().into_owned(), fs::read(path).expect("a file"))
    };
    let mut files: Vec<_> = entries.map(file).collect();
    files.sort();
    files
}

/// What an acpd does that knows databases only.
fn open_as_before(dir: &TempDir) -> Result<Connection, OpenError> {
    schema::open_database(dir.path(), &DATABASE, Durability::Process).map(|(_, connection)| connection)
}

// issue 29: an older acpd refuses a directory of session files, says which one to use, and changes nothing
#[test]
fn who_knows_databases_only_is_refused() {
    let dir = TempDir::new().unwrap();
    assert!(put(dir.path()).unwrap());
    let before = files(&dir);
    assert_eq!(before, [("acpd.db".to_owned(), PAGE.to_vec()), ("acpd.db-open".to_owned(), Vec::new())]);
    let error = open_as_before(&dir).unwrap_err();
    assert!(
        matches!(&error, OpenError::Newer { found: FILES_FORMAT, supported: DATABASE_FORMAT, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("use the newer acpd"), "{error}");
    assert_eq!(files(&dir), before);
    let mode = fs::metadata(path_in(dir.path())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

// issue 29: the marker is a whole database of acpd's, of the format behind the last one of databases
#[test]
fn the_marker_is_a_database() {
    let dir = TempDir::new().unwrap();
    put(dir.path()).unwrap();
    let database = Connection::open(path_in(dir.path())).unwrap();
    let said = |pragma: &str| -> Value {
        database.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!(said("integrity_check"), "ok".to_owned().into());
    assert_eq!(said("application_id"), i64::from(DATABASE.application_id).into());
    assert_eq!(said("user_version"), FILES_FORMAT.into());
    assert_eq!(said("page_count"), 1_i64.into());
    assert_eq!(said("journal_mode"), "delete".to_owned().into());
    assert_eq!(FILES_FORMAT, DATABASE_FORMAT + 1);
}

// issue 29: what has the name is told apart, and only an empty file is replaced
#[test]
fn only_what_is_nobodys_is_replaced() {
    let newer = with(&PAGE, FORMAT_AT, &77_i32.to_be_bytes());
    let foreign = with(&PAGE, APPLICATION_AT, &[1, 2, 3, 4]);
    for (bytes, found) in [
        (&b""[..], DatabaseFile::Empty),
        (&PAGE, DatabaseFile::Marker { format: FILES_FORMAT }),
        (&newer, DatabaseFile::Marker { format: 77 }),
        (&foreign, DatabaseFile::Database),
        (&[0; BYTES], DatabaseFile::Database),
        (&PAGE[1..], DatabaseFile::Database),
        (&[7; 2 * BYTES], DatabaseFile::Database),
    ] {
        let dir = TempDir::new().unwrap();
        fs::write(path_in(dir.path()), bytes).unwrap();
        assert_eq!(DatabaseFile::find(dir.path()).unwrap(), found);
        let is_replaced = found == DatabaseFile::Empty;
        assert_eq!(put(dir.path()).unwrap(), is_replaced, "{found:?}");
        let now = fs::read(path_in(dir.path())).unwrap();
        assert_eq!(now, if is_replaced { &PAGE } else { bytes }, "{found:?}");
    }
    let dir = TempDir::new().unwrap();
    assert_eq!(DatabaseFile::find(dir.path()).unwrap(), DatabaseFile::Missing);
    fs::create_dir(path_in(dir.path())).unwrap();
    assert_eq!(DatabaseFile::find(dir.path()).unwrap(), DatabaseFile::Database);
}

// issue 29: one that was killed while it wrote the marker leaves nothing that counts or stays
#[test]
fn what_was_left_aside_goes() {
    let dir = TempDir::new().unwrap();
    fs::write(aside_in(dir.path()), &PAGE[..100]).unwrap();
    assert_eq!(DatabaseFile::find(dir.path()).unwrap(), DatabaseFile::Missing);
    assert!(put(dir.path()).unwrap());
    assert!(!aside_in(dir.path()).exists());
    fs::hard_link(path_in(dir.path()), aside_in(dir.path())).unwrap();
    clear_aside(dir.path());
    assert_eq!(files(&dir)[0], ("acpd.db".to_owned(), PAGE.to_vec()));
    assert!(!aside_in(dir.path()).exists());
}

// issue 29: of several that begin a directory at once one wins, also where an older acpd is one of them
#[test]
fn one_of_many_wins() {
    for _ in 0..20 {
        let dir = TempDir::new().unwrap();
        let start = Barrier::new(6);
        let won = std::thread::scope(|scope| {
            let puts: Vec<_> = (0..5)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        put(dir.path()).expect("it can be written")
                    })
                })
                .collect();
            let older = scope.spawn(|| {
                start.wait();
                open_as_before(&dir).is_ok()
            });
            let ends = puts.into_iter().chain([older]).map(|end| end.join().expect("it ends"));
            ends.filter(|won| *won).count()
        });
        assert_eq!(won, 1);
    }
}

// issue 29: what others make or take away at the same moment is there or not, and is never taken for a link to nothing
#[test]
fn a_look_beside_others_tells_of_one_moment() {
    let dir = TempDir::new().unwrap();
    let path = path_in(dir.path());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                File::create(&path).unwrap();
                fs::remove_file(&path).unwrap();
            }
        });
        let is_told =
            |_| matches!(DatabaseFile::find(dir.path()), Ok(DatabaseFile::Missing | DatabaseFile::Empty));
        let others = (0..50_000).map(is_told).filter(|is_told| !is_told).count();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(others, 0);
    });
}
