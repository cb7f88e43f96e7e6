//! Databases of sessions that an earlier acpd began: `acpd migrate`, and what others do about them.

use crate::cli::{args, done, fails, ids, json, run};
use crate::state_directory::unnamed;
use acpd_e2e::{Exit, LogForm, PATIENCE, Scratch, acpd, log_database, make_database_log, until};
use rusqlite::Connection;
use rustix::process::Signal;
use std::fs::{File, create_dir, read_to_string};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Has a database open, which keeps it from being migrated.
fn open_database(state: &Path) -> Connection {
    let database = Connection::open(log_database(state)).expect("a log");
    let read: i64 =
        database.query_row("SELECT count(*) FROM session", [], |row| row.get(0)).expect("it is read");
    assert!(read >= 0);
    database
}

/// All sessions by their ids, with their events.
fn read(scratch: &Scratch) -> Vec<(String, String)> {
    let mut ids = ids(scratch, &[]);
    ids.sort();
    ids.into_iter()
        .map(|id| {
            let events = done(scratch, &["sessions", "events", &id, "--json"]);
            (id, events)
        })
        .collect()
}

/// A state directory of an earlier acpd with these sessions, and what is read of it.
fn old_directory(prompts: &[&str]) -> (Scratch, Vec<(String, String)>) {
    let scratch = Scratch::new();
    scratch.config_file();
    let mut daemon = scratch.serve();
    for prompt in prompts {
        done(&scratch, &["run", prompt]);
    }
    daemon.stop();
    let before = read(&scratch);
    assert_eq!(before.len(), prompts.len());
    make_database_log(&scratch.state());
    (scratch, before)
}

// issue 29: the write-ahead file of a database that is missing is told by every command, with what to do, and stays
#[test]
fn a_database_that_is_missing_is_told() {
    let (scratch, before) = old_directory(&["hello"]);
    let (database, away) = (log_database(&scratch.state()), scratch.path("away.db"));
    let logged = scratch.state().join("acpd.db-wal");
    std::fs::rename(&database, &away).expect("it is ours");
    std::fs::write(&logged, "what was written last").expect("it is ours");
    for command in [&["migrate"][..], &["sessions", "list"], &["serve", "--listen", "127.0.0.1:0"]] {
        let told = fails(&scratch, 1, command);
        for words in [
            "acpd.db-wal is a part of ",
            "acpd.db, which is missing: put ",
            " away to start with an empty log",
        ] {
            assert!(told.contains(words), "{command:?}: {told}");
        }
    }
    for command in [&["serve", "--check"][..], &["doctor"]] {
        let (exit, told, _) = run(&scratch, command);
        assert!(exit == Exit::Code(1) && told.contains("acpd.db, which is missing"), "{command:?}: {told}");
    }
    assert_eq!(read_to_string(&logged).expect("it stays"), "what was written last");
    assert!(!database.exists());
    std::fs::rename(&away, &database).expect("it is ours");
    done(&scratch, &["migrate"]);
    assert_eq!(read(&scratch), before);
}

// issue 29: a database is moved to files by a command; sessions are the same before and after, with a daemon and without
#[test]
fn a_database_is_migrated_by_command() {
    let (scratch, before) = old_directory(&["hello quokka", "another", "one more"]);
    let state = scratch.state();
    assert_eq!(unnamed(&state), [""; 0], "docs/storage.md names them");
    let migrated = json(&scratch, &["migrate"]);
    assert_eq!((&migrated["migrated"], &migrated["sessions"]), (&true.into(), &3.into()), "{migrated}");
    assert_eq!((migrated["lost"].as_array().map(Vec::len), &migrated["removedBytes"]), (Some(0), &().into()));
    assert_eq!(LogForm::of(&state), Some(LogForm::Files));
    assert_eq!(unnamed(&state), [""; 0], "docs/storage.md names them");
    assert_eq!(read(&scratch), before);
    let mut daemon = scratch.serve();
    assert_eq!(read(&scratch), before);
    // Words are found in the background.
    until("it is found", || {
        done(&scratch, &["sessions", "search", "quokka"]).contains("quokka").then_some(())
    });
    done(&scratch, &["run", "after"]);
    daemon.stop();

    let kept = state.join("acpd.db.migrated");
    let path = kept.to_str().expect("text");
    let refused = fails(&scratch, 2, &["sessions", "export", &before[0].0, "--output", path]);
    assert!(refused.contains("a file that acpd keeps sessions in"), "{refused}");
    let bytes = kept.metadata().expect("it is kept").len();
    let removed = json(&scratch, &["migrate", "--remove-old"]);
    assert_eq!((&removed["migrated"], &removed["removedBytes"]), (&false.into(), &bytes.into()), "{removed}");
    assert!(!kept.exists());
    let (exit, out, err) = run(&scratch, &["migrate"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(0), ""));
    assert!(err.contains("nothing to migrate"), "{err}");
}

// issue 29: a daemon migrates at its start, and says so
#[test]
fn a_daemon_migrates_at_its_start() {
    let (scratch, before) = old_directory(&["hello"]);
    let mut daemon = scratch.serve();
    assert_eq!(read(&scratch), before);
    assert_eq!(LogForm::of(&scratch.state()), Some(LogForm::Files));
    let log = daemon.stop();
    assert!(log.contains("database migrated") && log.contains("sessions=1"), "{log}");
}

// issue 29: what another process uses is not migrated: whoever needs it says so at once, and which process that is; nothing changes
#[test]
fn who_uses_a_database_is_named() {
    let (scratch, before) = old_directory(&["hello"]);
    let state = scratch.state();
    let in_use = open_database(&state);
    let holder = format!("another process (pid {}) uses: end it and try again", std::process::id());
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for words in [&["migrate"][..], &["sessions", "list"], &["run", "more"], &serve] {
        let refused = fails(&scratch, 1, words);
        assert!(refused.contains(&holder), "{words:?}: {refused}");
    }
    assert_eq!(LogForm::of(&state), Some(LogForm::Database));
    assert!(!state.join("sessions").exists());
    drop(in_use);
    assert_eq!(read(&scratch), before);
}

// issue 29: who reads sessions has them migrated; who only looks whether all is well changes nothing
#[test]
fn who_reads_sessions_migrates_them() {
    let (scratch, before) = old_directory(&["hello"]);
    let (_, told, _) = run(&scratch, &["doctor"]);
    assert!(told.contains("the next start moves them to files"), "{told}");
    let checked = done(&scratch, &["serve", "--check"]);
    assert!(checked.contains("its format is 9, and is brought to 10"), "{checked}");
    assert_eq!(LogForm::of(&scratch.state()), Some(LogForm::Database));
    assert_eq!(ids(&scratch, &[]), [before[0].0.as_str()]);
    assert_eq!(LogForm::of(&scratch.state()), Some(LogForm::Files));
}

// issue 29: a daemon that migrates is waited for, however long it takes, by commands and by its service manager
#[test]
fn a_daemon_that_migrates_is_waited_for() {
    let (scratch, before) = old_directory(&["hello"]);
    let state = scratch.state();
    // It has begun once, and goes on when it gets this lock.
    create_dir(state.join("migrating")).expect("made");
    let lock = File::create(state.join("acpd.db-open")).expect("made");
    lock.lock().expect("nobody has it");
    let manager = UnixDatagram::bind(scratch.path("manager")).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("a time");
    let mut serve = scratch.command(acpd());
    let words = args(&scratch, &["serve", "--listen", "127.0.0.1:0"]);
    serve.args(words.iter().map(AsRef::<str>::as_ref)).env("NOTIFY_SOCKET", scratch.path("manager"));
    let mut daemon = scratch.start_command(serve);
    let mut message = [0; 4096];
    let length = manager.recv(&mut message).expect("the manager is told");
    let told = String::from_utf8_lossy(&message[..length]).into_owned();
    assert!(told.contains("EXTEND_TIMEOUT_USEC=120000000") && told.contains("to files"), "{told}");

    let said = scratch.path("said");
    let mut command = scratch.command("sh");
    command.args(["-c", "exec 2> \"$0\"; exec \"$@\""]).arg(&said).arg(acpd());
    let words = args(&scratch, &["sessions", "list"]);
    command.args(words.iter().map(AsRef::<str>::as_ref));
    let waits = scratch.start_command(command);
    until("it waits", || read_to_string(&said).ok()?.contains("waiting for the daemon").then_some(()));
    drop(lock);
    let (exit, listed, _) = waits.end();
    assert_eq!(exit, Exit::Code(0), "{:?}", read_to_string(&said));
    assert!(listed.contains(before[0].0.get(..8).expect("an id")) || listed.contains("hello"), "{listed}");
    let listening = daemon.next_line().expect("it starts");
    assert!(listening.starts_with("listening on"), "{listening}");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().0, Exit::Code(0));
}

// issue 29: where there is nothing, nothing is made
#[test]
fn nothing_is_migrated_where_there_is_no_log() {
    let scratch = Scratch::new();
    scratch.config_file();
    let (exit, out, err) = run(&scratch, &["migrate"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(0), ""), "{err}");
    assert!(err.contains("nothing to migrate") && !scratch.state().exists(), "{err}");
}
