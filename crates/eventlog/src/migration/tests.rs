//! State directories that are migrated: what is in them is the same before and after, whatever comes in between.

mod damage;
mod fixture;

use super::*;
use crate::EventLog;
use crate::session_files::fail_point::{FailPoint, dying_at, failing_at};
use fixture::{Log, end, fill, look, open, open_as_before, push};
use rusqlite::Connection;
use std::sync::Barrier;
use tempfile::TempDir;

fn try_it(dir: &TempDir) -> Result<Option<Migrated>, NotMigrated> {
    migrate(dir.path(), &mut |_| {})
}

fn done(dir: &TempDir) -> Migrated {
    try_it(dir).expect("it is migrated").expect("there is a database")
}

/// Names in a directory.
fn names(dir: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).expect("it is read");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

// issue 29: all that a database has of its sessions is in their files
#[tokio::test]
async fn everything_comes_over() {
    let dir = TempDir::new().expect("a directory");
    let before = fill(dir.path()).await;
    let migrated = done(&dir);
    assert_eq!((migrated.sessions, migrated.lost.len()), (before.rows.len() as u64, 0));
    assert!(
        ["acpd.db", "acpd.db.migrated", "claims", "hooks.db", "index-1.db", "sessions"]
            .iter()
            .all(|name| names(&dir).contains(&(*name).to_owned())),
        "{:?}",
        names(&dir)
    );
    assert_eq!(look(dir.path()).await, before);
    let log = open(dir.path());
    let unindexed = log.unindexed(None, 100).await.expect("it is read");
    assert!(!unindexed.is_empty(), "the words of what was said are indexed in the background");
    log.close().await;
    assert_eq!(try_it(&dir), Ok(None));
    assert!(matches!(open_as_before(dir.path()), Err(OpenError::Newer { .. })));
    // The database can be put back.
    fs::remove_dir_all(dir.path().join("sessions")).expect("it is removed");
    fs::rename(dir.path().join("acpd.db.migrated"), dir.path().join("acpd.db")).expect("it is moved");
    drop(open_as_before(dir.path()).expect("it opens"));
    done(&dir);
    assert_eq!(look(dir.path()).await, before);
}

// issue 29: sessions go on after they were migrated as they would have before
#[tokio::test]
async fn sessions_go_on() {
    let dir = TempDir::new().expect("a directory");
    fill(dir.path()).await;
    done(&dir);
    let log = open(dir.path());
    let mut adopted = log.adopt("live", "host-1", "host-2", push(&["adopted"])).await.expect("it is dead's");
    assert_eq!(log.get("live").await.expect("it is read").expect("it is there").position, 77);
    assert_eq!(log.waiting("live").await.expect("it is read").len(), 2);
    adopted.append_durable(push(&["more"])).await.expect("it is written");
    drop(adopted);
    let mut resumed = log.reopen("ended", "host-2").await.expect("nobody has it");
    let last = resumed.append_durable(push(&["again"])).await.expect("it is written");
    resumed.append_final(end(99)).await.expect("it is written");
    let mut cursor = log.cursor("ended", last.start() - 2).await.expect("it is there");
    let mut seen = Vec::new();
    while let Some(block) = cursor.next().await.expect("it is read") {
        seen.extend(block.events().map(|event| event.seq));
    }
    assert_eq!(seen, [last.start() - 1, *last.start()]);
    log.delete("idle", "host-9").await.expect("nobody has it");
    log.close().await;
    let after = look(dir.path()).await;
    assert!(after.rows.iter().all(|row| row.id != "idle"));
}

// issue 29: a process that dies at any step leaves the database or the files, and the next one goes on
#[tokio::test]
async fn a_death_at_any_step_loses_nothing() {
    use FailPoint::{Copied, Kept, Marked, Noted, Placed, Prepared, Settled};
    for point in [Copied, Noted, Prepared, Settled, Kept, Marked, Placed] {
        let dir = TempDir::new().expect("a directory");
        let before = fill(dir.path()).await;
        let before = if point == Noted { noted_and_changed(&dir, before) } else { before };
        let died = dying_at(point, || try_it(&dir));
        assert!(matches!(died, Err(NotMigrated::Failed { .. })), "{point:?}: {died:?}");
        let is_files = matches!(point, Marked | Placed);
        // An older acpd has the database, or is refused.
        match open_as_before(dir.path()) {
            Ok(database) => drop(database),
            Err(error) => assert!(is_files && matches!(error, OpenError::Newer { .. }), "{point:?}: {error}"),
        }
        if is_files {
            // So often as it takes.
            let died = dying_at(Placed, || finish(dir.path()));
            assert!(died.is_err(), "{point:?}");
            assert_eq!(try_it(&dir), Ok(None));
        } else {
            done(&dir);
        }
        assert_eq!(look(dir.path()).await, before, "{point:?}");
        let left = names(&dir);
        assert!(!left.iter().any(|name| name == "migrating" || name == "migrated"), "{point:?}: {left:?}");
    }
}

/// Has copied all of a database, and died; of what is noted then, one session changes.
fn noted_and_changed(dir: &TempDir, mut before: Log) -> Log {
    let died = dying_at(FailPoint::Prepared, || try_it(dir));
    assert!(died.is_err(), "{died:?}");
    change(dir, "UPDATE session SET updated_ms = 4 WHERE id = 'ended'");
    let changed = before.rows.iter_mut().find(|row| row.id == "ended");
    changed.expect("it is there").updated_ms = 4;
    before.rows.sort_by(|one, other| one.compare(other));
    before
}

/// Does something to a database, as an older acpd would.
fn change(dir: &TempDir, statements: &str) {
    let database = open_as_before(dir.path()).expect("it opens");
    database.execute_batch(statements).expect("it is changed");
}

// issue 29: a database that a process uses, of whatever version, is not migrated, and nobody waits
#[tokio::test]
async fn a_database_in_use_is_left() {
    let dir = TempDir::new().expect("a directory");
    let before = fill(dir.path()).await;
    let writing = open_as_before(dir.path()).expect("it opens");
    let in_use = Err(NotMigrated::InUse { pid: None });
    assert_eq!(try_it(&dir), in_use);
    writing.execute_batch("UPDATE session SET updated_ms = updated_ms").expect("it goes on");
    drop(writing);
    let looking = Connection::open(dir.path().join("acpd.db")).expect("it opens");
    let count: i64 = looking.query_row("SELECT count(*) FROM session", [], |row| row.get(0)).expect("rows");
    assert_eq!(count, before.rows.len() as i64);
    assert_eq!(try_it(&dir), in_use);
    drop(looking);
    done(&dir);
    assert_eq!(look(dir.path()).await, before);
}

// issue 29: what was copied when a process died, and changed since, is copied again; what is gone since is gone
#[tokio::test]
async fn what_changed_since_it_was_copied_is_as_it_is() {
    let dir = TempDir::new().expect("a directory");
    let mut before = fill(dir.path()).await;
    let died = dying_at(FailPoint::Prepared, || try_it(&dir));
    assert!(matches!(died, Err(NotMigrated::Failed { .. })), "{died:?}");
    change(
        &dir,
        "INSERT INTO block (key, last_seq, records)
           SELECT row << 36 | last_seq + 1, last_seq + 1, x'010000000600020000000000000078' FROM session WHERE id = 'Ab';
         UPDATE session SET last_seq = last_seq + 1, updated_ms = 50 WHERE id = 'Ab';
         DELETE FROM info WHERE session = (SELECT row FROM session WHERE id = 'idle');
         DELETE FROM session WHERE id = 'idle';
         INSERT INTO session (id, agent, cwd, created_ms, updated_ms) VALUES ('idle', 'another', '/', 1, 2);
         INSERT INTO info (session, info) VALUES (last_insert_rowid(), x'7b7d');
         UPDATE info SET info = x'6e6577' WHERE session = (SELECT row FROM session WHERE id = 'A/../\u{fc}');
         UPDATE session SET id = 'plain', updated_ms = 70 WHERE id = 'A/../\u{fc}'",
    );
    let all = u64::try_from(before.rows.len()).expect("a few");
    let migrated = done(&dir);
    let stored = bytes_of(&dir.path().join("sessions"));
    assert!(migrated.bytes < stored / 10, "{} of {stored}: what had not changed was there", migrated.bytes);
    assert_eq!(migrated.sessions, all);
    let after = look(dir.path()).await;
    let row = |id: &str| after.rows.iter().find(|row| row.id == id).expect("it is there");
    assert_eq!(
        (row("Ab").updated_ms, row("idle").agent.as_str(), &row("plain").info[..]),
        (50, "another", &b"new"[..])
    );
    assert_eq!(after.events["Ab"].last(), Some(&(row("Ab").last_seq, 6, 2, b"x".to_vec())));
    assert_eq!(after.events["plain"], before.events["A/../\u{fc}"]);
    let changed = ["Ab", "idle", "plain", "A/../\u{fc}"];
    for id in changed {
        before.events.remove(id);
    }
    let rest: Vec<_> = after.events.into_iter().filter(|(id, _)| !changed.contains(&id.as_str())).collect();
    assert_eq!(rest, before.events.into_iter().collect::<Vec<_>>());
    let index = Connection::open(dir.path().join("index-1.db")).expect("it opens");
    let rows: i64 = index.query_row("SELECT count(*) FROM session", [], |row| row.get(0)).expect("rows");
    let directories = walk(&dir.path().join("sessions"));
    assert_eq!((rows as u64, directories as u64), (all, all));
}

fn bytes_of(path: &Path) -> u64 {
    match fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| bytes_of(&entry.expect("an entry").path())).sum(),
        Err(_) => fs::metadata(path).expect("it is there").len(),
    }
}

/// How many session directories there are.
fn walk(sessions: &Path) -> usize {
    let spreads = fs::read_dir(sessions).expect("it is read").map(|entry| entry.expect("an entry"));
    let spreads = spreads.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    spreads.map(|entry| fs::read_dir(entry.path()).expect("it is read").count()).sum()
}

// issue 29: whoever waits for a migration is told how far it is, up to its end
#[tokio::test]
async fn progress_is_told() {
    let dir = TempDir::new().expect("a directory");
    fill(dir.path()).await;
    let mut told = Vec::new();
    let migrated = migrate(dir.path(), &mut |progress| told.push(progress)).expect("it is migrated");
    let all = migrated.expect("there is one").bytes;
    assert!(told.iter().all(|progress| progress.all == all && progress.done <= all), "{told:?}");
    assert!(told.is_sorted_by_key(|progress| progress.done), "{told:?}");
    assert_eq!(told.last(), Some(&Progress { done: all, all }));
    assert!(told.iter().any(|progress| (1..all).contains(&progress.done)), "{told:?}");
}

// issue 29: where the disk has no room for a copy, the database stays as it is, and what was copied gives its room back
#[tokio::test]
async fn a_full_disk_leaves_the_database() {
    let no_room = |needed, free| Some(NotMigrated::NoRoom { needed, free });
    for (bytes, free, expected) in [
        (5, None, None),
        (5, Some(BESIDE_BYTES + 5), None),
        (5, Some(BESIDE_BYTES + 4), no_room(BESIDE_BYTES + 5, BESIDE_BYTES + 4)),
        (u64::MAX, Some(7), no_room(u64::MAX, 7)),
    ] {
        assert_eq!(refusal(bytes, free), expected);
    }
    for point in [FailPoint::Copied, FailPoint::Noted, FailPoint::Prepared, FailPoint::Settled] {
        let dir = TempDir::new().expect("a directory");
        let before = fill(dir.path()).await;
        let before = if point == FailPoint::Noted { noted_and_changed(&dir, before) } else { before };
        let full = failing_at(point, io::ErrorKind::StorageFull, || try_it(&dir));
        assert!(matches!(full, Err(NotMigrated::Failed { .. })), "{point:?}: {full:?}");
        let left = names(&dir);
        assert!(!left.iter().any(|name| name.starts_with("migrat")), "{point:?}: {left:?}");
        done(&dir);
        assert_eq!(look(dir.path()).await, before, "{point:?}");
    }
}

// issue 29: of several that start at once, one migrates, and all have the same log
#[tokio::test]
async fn several_may_start_at_once() {
    for _ in 0..4 {
        let dir = TempDir::new().expect("a directory");
        let before = fill(dir.path()).await;
        let start = Barrier::new(4);
        let opened: Vec<EventLog> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        try_it(&dir).expect("nobody uses it");
                        open(dir.path())
                    })
                })
                .collect();
            starts.into_iter().map(|started| started.join().expect("it opens")).collect()
        });
        for log in opened {
            assert_eq!(log.list(crate::ListQuery::default()).await.expect("it is read"), before.rows);
            log.close().await;
        }
        assert!(is_done(dir.path()));
        assert_eq!(look(dir.path()).await, before);
    }
}

// issue 29, contract 1.7: a database of any earlier form is migrated; sessions from before there were creators are nobody's
#[tokio::test]
async fn earlier_forms_are_migrated() {
    for form in 1..=DATABASE.steps.len() {
        let dir = TempDir::new().expect("a directory");
        let file = Connection::open(dir.path().join("acpd.db")).expect("it opens");
        file.pragma_update(None, "journal_mode", "wal").expect("it is set");
        DATABASE.steps[..form].iter().for_each(|step| file.execute_batch(step).expect("it is made"));
        file.pragma_update(None, "application_id", DATABASE.application_id).expect("it is set");
        file.pragma_update(None, "user_version", form as i64).expect("it is set");
        file.execute_batch(
            "INSERT INTO session (id, agent, cwd, created_ms, updated_ms, ended, last_seq) VALUES ('a', 'x', '/', 1, 2, 1, 1);
             INSERT INTO info (session, info) VALUES (1, x'7b7d');
             INSERT INTO block (key, last_seq, records) VALUES ((1 << 36) | 1, 1, x'010000000100020000000000000078');",
        )
        .expect("it is written");
        drop(file);
        assert_eq!(done(&dir).sessions, 1);
        let after = look(dir.path()).await;
        assert_eq!(after.events["a"], [(1, 1, 2, b"x".to_vec())], "{form}");
        let row = &after.rows[0];
        assert_eq!((&row.info[..], row.updated_ms, row.ended), (&b"{}"[..], 2, true));
        assert_eq!((&row.created_by, row.state, row.position), (&None, 0, 0));
    }
}

// issue 29: where there is no database, or session files are beside it, nothing is done
#[tokio::test]
async fn what_is_no_database_is_left() {
    let dir = TempDir::new().expect("a directory");
    assert_eq!(try_it(&dir), Ok(None));
    assert!(names(&dir).is_empty());
    fill(dir.path()).await;
    fs::create_dir_all(dir.path().join("sessions/ab/other")).expect("it is made");
    assert_eq!(try_it(&dir), Err(NotMigrated::Occupied));
}

// issue 28: what cannot be put in its place is named, and is not taken for nothing to do by the next that asks
#[tokio::test]
async fn what_is_in_the_way_of_the_copy_is_named() {
    let dir = TempDir::new().expect("a directory");
    fill(dir.path()).await;
    let in_the_way = dir.path().join("index-1.db");
    fs::create_dir(&in_the_way).expect("it is made");
    for _ in 0..2 {
        let error = try_it(&dir).expect_err("it cannot be placed").to_string();
        assert!(error.contains(in_the_way.to_str().expect("text")), "{error}");
    }
    fs::remove_dir(&in_the_way).expect("it is empty");
    assert_eq!(try_it(&dir), Ok(None));
    let sessions = open(dir.path()).list(Default::default()).await.expect("it is read");
    assert!(!sessions.is_empty());
}

// issue 28: a database on a disk that is not there is not taken for none
#[test]
fn a_database_that_is_elsewhere_is_not_taken_for_none() {
    let dir = TempDir::new().expect("a directory");
    std::os::unix::fs::symlink("/no/such/disk/acpd.db", dir.path().join("acpd.db")).expect("it is made");
    let error = try_it(&dir).expect_err("it is not known").to_string();
    assert!(error.contains("acpd.db is a link to what is not there"), "{error}");
    let opened =
        EventLog::open(dir.path(), crate::Options::default()).map(drop).expect_err("nor is it opened");
    let why = std::error::Error::source(&opened).map(ToString::to_string).unwrap_or_default();
    assert!(error.ends_with(&why) && !why.is_empty(), "{opened:?}");
}

// issue 2, deliver 4: what is newer, another program's or no database is refused with a clear error, and left as it is
#[test]
fn what_is_not_acpds_is_refused() {
    let foreign = "CREATE TABLE theirs (x); PRAGMA application_id = 5";
    let newer = "PRAGMA application_id = 1633906788; PRAGMA user_version = 10; CREATE TABLE theirs (x)";
    for (statements, expected) in [
        (Some(foreign), "another program"),
        (Some(newer), "use the newer acpd"),
        (None, "restore it from a backup"),
    ] {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("acpd.db");
        match statements {
            Some(statements) => {
                Connection::open(&path).expect("it opens").execute_batch(statements).expect("it is made")
            }
            None => fs::write(&path, "no database, but longer than the header of one ".repeat(99))
                .expect("it is written"),
        }
        let before = fs::read(&path).expect("it is read");
        let left = try_it(&dir);
        assert!(
            matches!(&left, Err(NotMigrated::Failed { detail }) if detail.contains(expected)),
            "{left:?}"
        );
        assert!(fs::read(&path).expect("it is read") == before, "{expected}");
    }
}

// issue 29: the database is kept for a while
#[tokio::test]
async fn the_database_is_kept_for_30_days() {
    let dir = TempDir::new().expect("a directory");
    fill(dir.path()).await;
    let kept = dir.path().join("acpd.db.migrated");
    #[expect(clippy::disallowed_methods, reason = "the time of a file is the system's")]
    let now = SystemTime::now();
    let later = |days: u64| Some(now + Duration::from_secs(days * 24 * 60 * 60));
    assert_eq!(remove_kept(dir.path(), None).expect("there is none"), None);
    done(&dir);
    for age in [0, 29] {
        assert_eq!(remove_kept(dir.path(), later(age)).expect("it is looked at"), None);
    }
    let bytes = fs::metadata(&kept).expect("it is there").len();
    assert_eq!(remove_kept(dir.path(), later(31)).expect("it is removed"), Some(bytes));
    assert!(!kept.exists());
    fs::write(&kept, "a copy").expect("it is written");
    assert_eq!(remove_kept(dir.path(), None).expect("it is removed"), Some(6));
    assert_eq!(remove_kept(dir.path(), None).expect("there is none"), None);
}
