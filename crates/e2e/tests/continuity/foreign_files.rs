//! Other programs of the same user at the files of the log: its index may be read, locked, damaged or deleted at any time,
//! and what happens to the files of one session is nothing to the others.
//!
//! This process is the other program. Not here: what an agent is served (`services`), and hosts that share a directory.

use crate::session::{Session, keeping, of_kind, post, said, without_holes};
use acpd_e2e::{Daemon, Exit, Http, Scratch, files_below, files_of_session, session_files};
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The index of sessions.
fn index(state: &Path) -> PathBuf {
    state.join("index-1.db")
}

/// Its files, with those that SQLite has beside it.
fn index_files(state: &Path) -> Vec<PathBuf> {
    ["index-1.db", "index-1.db-wal", "index-1.db-shm"].map(|name| state.join(name)).into()
}

/// Removes what there is of an index.
pub(crate) fn remove_index(state: &Path) {
    for file in index_files(state).iter().filter(|file| file.exists()) {
        std::fs::remove_file(file).expect("it is there");
    }
}

/// A session of one turn that has ended.
fn ended(daemon: &Daemon, scratch: &Scratch, word: &str) -> Session {
    let session = Session::begin(daemon, scratch, "example", word);
    session.events_until_turn(daemon, 1);
    session.close(daemon);
    session
}

/// The sessions that a daemon lists: each id, with whether it has ended.
fn listed(daemon: &Daemon) -> Vec<(String, bool)> {
    let list = Http::on(daemon.connect()).request("GET", "/v1/sessions", &[], "").json();
    let sessions = list["sessions"].as_array().unwrap_or_else(|| panic!("sessions: {list}"));
    let entry = |session: &Value| {
        let id = session["sessionId"].as_str().expect("an id").to_owned();
        (id, session["ended"].as_bool().expect("a word"))
    };
    let mut all: Vec<_> = sessions.iter().map(entry).collect();
    all.sort();
    all
}

fn sorted(sessions: &[(&Session, bool)]) -> Vec<(String, bool)> {
    let mut all: Vec<_> = sessions.iter().map(|(session, ended)| (session.id.clone(), *ended)).collect();
    all.sort();
    all
}

/// Everything that one does with sessions works, and is listed: a turn in `live`, the end of it, a session that begins and one that
/// is deleted.
fn all_works(daemon: &Daemon, scratch: &Scratch, live: &Session, turn: u64) {
    daemon.until_ready();
    assert_eq!(live.prompt(daemon, &format!("turn {turn}")).status, 202);
    let events = live.events_until_turn(daemon, turn);
    without_holes(&events);
    assert_eq!(of_kind(&events, "prompt").len() as u64, turn);
    let before = listed(daemon);
    let passing = ended(daemon, scratch, "passing");
    let mut with = before.clone();
    with.push((passing.id.clone(), true));
    with.sort();
    assert_eq!(listed(daemon), with, "at once");
    let deleted = Http::on(daemon.connect()).request("DELETE", &passing.path(""), &[], "");
    assert_eq!(deleted.status, 204);
    assert_eq!(listed(daemon), before, "at once");
}

/// After SIGKILL the next daemon has all of it.
fn nothing_is_lost(mut daemon: Daemon, scratch: &Scratch, sessions: &[(&Session, bool)]) -> Daemon {
    let before: Vec<_> = sessions.iter().map(|(session, _)| session.events(&daemon)).collect();
    daemon.kill();
    let daemon = scratch.serve();
    assert_eq!(listed(&daemon), sorted(sessions));
    for ((session, _), before) in sessions.iter().zip(before) {
        let after = session.events(&daemon);
        without_holes(&after);
        assert_eq!(after[..before.len()], before[..], "{}", session.id);
    }
    daemon
}

// issue 29: the index is locked, as a program that writes it locks it: sessions begin, go on, end and are deleted, a daemon is ready
// and starts
#[test]
fn an_index_that_is_locked_holds_nobody_up() {
    let scratch = keeping("60s");
    let daemon = scratch.serve();
    let old = ended(&daemon, &scratch, "old");
    let live = Session::begin(&daemon, &scratch, "example", "first");
    live.events_until_turn(&daemon, 1);
    let other = Connection::open(index(&scratch.state())).expect("it is a database");
    other.execute_batch("BEGIN EXCLUSIVE").expect("nobody keeps it for long");
    all_works(&daemon, &scratch, &live, 2);
    let both = [(&old, true), (&live, false)];
    let daemon = nothing_is_lost(daemon, &scratch, &both);
    all_works(&daemon, &scratch, &live, 3);
    other.execute_batch("ROLLBACK").expect("it was locked");
    all_works(&daemon, &scratch, &live, 4);
    nothing_is_lost(daemon, &scratch, &both).stop();
}

// issue 29: the index is read for long, and copied, and its files are opened and closed
#[test]
fn an_index_that_is_read_holds_nobody_up() {
    let scratch = keeping("60s");
    let daemon = scratch.serve();
    let old = ended(&daemon, &scratch, "old");
    let live = Session::begin(&daemon, &scratch, "example", "first");
    live.events_until_turn(&daemon, 1);
    let reader = Connection::open(index(&scratch.state())).expect("it is a database");
    let seen = "SELECT count(*) FROM session";
    reader.execute_batch("BEGIN").expect("it is read");
    reader.query_row(seen, [], |row| row.get::<_, i64>(0)).expect("it is read");
    all_works(&daemon, &scratch, &live, 2);
    for file in index_files(&scratch.state()) {
        std::fs::copy(file, scratch.path("copy")).expect("it is there");
    }
    all_works(&daemon, &scratch, &live, 3);
    let both = [(&old, true), (&live, false)];
    let daemon = nothing_is_lost(daemon, &scratch, &both);
    reader.execute_batch("COMMIT").expect("it was read");
    drop(reader);
    all_works(&daemon, &scratch, &live, 4);
    nothing_is_lost(daemon, &scratch, &both).stop();
}

// issue 29: the index is deleted while a daemon has it open, as a whole or in part; another acpd that comes makes its own
#[test]
fn an_index_that_is_deleted_takes_nothing_with_it() {
    for names in [&["", "-wal", "-shm"][..], &[""], &["-wal"], &["-shm"]] {
        let scratch = keeping("60s");
        let daemon = scratch.serve();
        let old = ended(&daemon, &scratch, "old");
        let live = Session::begin(&daemon, &scratch, "example", "first");
        live.events_until_turn(&daemon, 1);
        for name in names {
            let path = format!("{}{name}", index(&scratch.state()).display());
            std::fs::remove_file(path).expect("a daemon has it");
        }
        all_works(&daemon, &scratch, &live, 2);
        let [state, config] = [scratch.state(), scratch.config_file()].map(|path| path.display().to_string());
        let places = ["--state-dir", &*state, "--config", &*config];
        let (exit, out, err) =
            scratch.run(&[&["run", "--embedded", "--format", "quiet"], &places[..], &["beside"]].concat());
        assert_eq!((exit, out.trim_end()), (Exit::Code(0), "beside"), "{names:?}: {err}");
        all_works(&daemon, &scratch, &live, 3);
        let (exit, out, err) = scratch.run(&[&["sessions", "list", "--json"], &places[..]].concat());
        assert_eq!(exit, Exit::Code(0), "{names:?}: {err}");
        let told: Value = serde_json::from_str(&out).expect("JSON");
        let ids = told["sessions"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["sessionId"].as_str().expect("an id"));
        let beside = ids.map(str::to_owned).find(|id| ![&old.id, &live.id].contains(&id));
        // The daemon looks into the index that was taken from it.
        let mut daemon = daemon;
        let before = [&old, &live].map(|session| session.events(&daemon));
        daemon.kill();
        let mut daemon = scratch.serve();
        let all = listed(&daemon);
        assert_eq!(all.len(), 3, "{names:?}: {all:?}");
        assert!(beside.is_none_or(|id| all.contains(&(id, true))), "{names:?}: {all:?}");
        for (session, before) in [&old, &live].into_iter().zip(before) {
            let after = session.events(&daemon);
            assert_eq!(after[..before.len()], before[..], "{names:?}");
        }
        all_works(&daemon, &scratch, &live, 4);
        daemon.stop();
    }
}

/// Changes a byte in the middle of a file.
fn damage(file: &Path) {
    let file = OpenOptions::new().read(true).write(true).open(file).expect("it is there");
    let middle = file.metadata().expect("it is open").len() / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, middle).expect("it has a middle");
    file.write_all_at(&[byte[0] ^ 0x20], middle).expect("it can be written");
}

// issue 29: damage in the files of one session is told of that session, by its file, and harms no other
#[test]
fn damage_in_one_session_harms_no_other() {
    let scratch = keeping("60s");
    scratch.exempt_logs("one session is damaged");
    let daemon = scratch.serve();
    let words = (0..40).map(|number| format!("say word-{number}")).collect::<Vec<_>>().join("\n");
    let [damaged, old] = [&*words, "old"].map(|words| ended(&daemon, &scratch, words));
    let live = Session::begin(&daemon, &scratch, "example", "first");
    live.events_until_turn(&daemon, 1);
    let whole = damaged.events(&daemon);
    let files = files_of_session(&scratch.state(), &damaged.id);
    damage(files.last().expect("a segment"));
    all_works(&daemon, &scratch, &live, 2);
    // And a daemon that has never read it.
    let mut daemon = daemon;
    let before = [&old, &live].map(|session| session.events(&daemon));
    daemon.kill();
    let mut daemon = scratch.serve();
    assert_eq!(listed(&daemon), sorted(&[(&damaged, true), (&old, true), (&live, false)]));
    for (session, before) in [&old, &live].into_iter().zip(before) {
        assert_eq!(session.events(&daemon)[..before.len()], before[..]);
    }
    let answer = Http::on(daemon.connect()).request("GET", &damaged.path("/events?limit=1000"), &[], "");
    match answer.status {
        200 => {
            let events = answer.json()["events"].as_array().expect("events").clone();
            assert!(
                events.len() < whole.len() && whole.starts_with(&events),
                "only what is whole: {events:?}"
            );
        }
        status => assert!(status >= 500, "{answer:?}"),
    }
    all_works(&daemon, &scratch, &live, 3);
    daemon.stop();
}

/// The outcome of something done with a file that was there. It may be gone since: of a session that is deleted, or written aside.
fn unless_gone<T>(done: std::io::Result<T>) -> Option<T> {
    match done {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        done => Some(done.expect("it can be opened and read")),
    }
}

// issue 29: a program that opens, locks and closes the files of a session, as one that makes a copy does, harms nothing
#[test]
fn a_program_that_opens_session_files_harms_nothing() {
    let scratch = keeping("60s");
    let daemon = scratch.serve();
    let live = Session::begin(&daemon, &scratch, "example", "first");
    live.events_until_turn(&daemon, 1);
    for turn in 2..6 {
        let files = session_files(&scratch.state());
        let open = |file: &PathBuf| unless_gone(OpenOptions::new().read(true).write(true).open(file));
        let held: Vec<File> = files.iter().filter_map(open).collect();
        assert!(!held.is_empty());
        for file in &held {
            flock(file, FlockOperation::NonBlockingLockExclusive).expect("acpd locks none of them");
        }
        all_works(&daemon, &scratch, &live, turn);
        drop(held);
        let all = files_below(&scratch.state().join("sessions"));
        let read: Vec<_> = all.into_iter().filter_map(|file| unless_gone(std::fs::read(file))).collect();
        assert!(!read.is_empty());
    }
    let daemon = nothing_is_lost(daemon, &scratch, &[(&live, false)]);
    all_works(&daemon, &scratch, &live, 6);
    assert!(said(&live.events(&daemon)).starts_with("first"));
    let mut daemon = daemon;
    assert_eq!(post(&daemon, &live.path("/close"), &json!({})).status, 204);
    daemon.stop();
}
