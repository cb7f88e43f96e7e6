//! `acpd serve --check` (contract 7.1).

use crate::cli::{fails, front_end, ids, json, leave, run};
use acpd_e2e::{Exit, Scratch, Volume, log_database, make_database_log};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Every file below a directory, with its size and when it was changed.
fn files(dir: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let of_file = path.symlink_metadata().expect("it is there");
        if of_file.is_dir() {
            found.append(&mut files(&path));
        }
        // When memory that is shared was written is known later, if anything is.
        if path.extension().is_none_or(|extension| extension != "db-shm") {
            found.insert(path, (of_file.len(), of_file.modified().expect("Linux knows")));
        }
    }
    found
}

// contract 7.1: it says that a daemon could start, before the first, beside one and after it, and writes nothing
#[test]
fn what_can_start_is_told_and_nothing_is_written() {
    let scratch = Scratch::new();
    scratch.config_file();
    let (exit, out, err) = run(&scratch, &["serve", "--check"]);
    assert_eq!((exit, err.as_str()), (Exit::Code(0), ""), "{out}");
    assert!(out.contains("ok  log: made at the first use") && out.contains("can start here"), "{out}");
    assert!(!scratch.state().exists());
    let mut daemon = scratch.serve();
    let (client, _) = front_end(&scratch);
    let told = json(&scratch, &["serve", "--check"]);
    assert_eq!((&told["ok"], &told["version"]), (&true.into(), &env!("CARGO_PKG_VERSION").into()));
    assert!(told["checks"].as_array().is_some_and(|checks| checks.len() >= 3), "{told}");
    leave(client);
    daemon.stop();
    let before = files(&scratch.state());
    let (exit, out, _) = run(&scratch, &["serve", "--check"]);
    assert_eq!(exit, Exit::Code(0), "{out}");
    assert!(out.contains("ok  log: its format is "), "{out}");
    assert_eq!(files(&scratch.state()), before);
}

/// What keeps a daemon from starting keeps the check from saying that it could, and a look changes nothing.
fn agrees(scratch: &Scratch, words: &[&str]) {
    let before = files(&scratch.state());
    let (exit, out, err) = run(scratch, &["serve", "--check"]);
    assert!(exit == Exit::Code(1) && out.contains("does not start here"), "{out}{err}");
    assert_eq!(files(&scratch.state()), before);
    let (exit, told, _) = run(scratch, &["doctor"]);
    assert_eq!(exit, Exit::Code(1), "{told}");
    for words in words {
        assert!(out.contains(words) && told.contains(words), "{words}: {out}{told}");
    }
    let (exit, _, err) = run(scratch, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(exit == Exit::Code(1) && err.contains("error"), "{err}");
}

// contract 7.1: a state directory in which a daemon could not write is refused before it is tried
#[test]
fn what_cannot_be_written_is_refused() {
    let scratch = Scratch::new();
    scratch.config_file();
    scratch.serve().stop();
    let hosts = scratch.state().join("hosts");
    if !rustix::process::geteuid().is_root() {
        std::fs::set_permissions(&hosts, Permissions::from_mode(0o500)).expect("it is ours");
        agrees(&scratch, &["hosts cannot be written: Permission denied", "-> chmod u+rwX"]);
        std::fs::set_permissions(&hosts, Permissions::from_mode(0o700)).expect("it is ours");
    }
    std::fs::remove_dir(&hosts).expect("no host is there");
    std::fs::write(&hosts, "").expect("it is ours");
    agrees(&scratch, &["hosts cannot be written: Not a directory", "-> move it away"]);
    std::fs::remove_file(&hosts).expect("it is ours");
    assert_eq!(run(&scratch, &["serve", "--check"]).0, Exit::Code(0));
}

// contract 7.1: a disk without inodes, or read-only, keeps a daemon from handing over, and the daemon goes on
#[test]
fn a_disk_on_which_nothing_begins_is_refused() {
    let scratch = Scratch::new();
    let Some(volume) = Volume::mount(&scratch, "size=20m,mode=700,nr_inodes=100") else { return };
    scratch.config_file();
    let mut daemon = scratch.serve();
    let fillers: Vec<PathBuf> = (0..)
        .map(|number| scratch.state().join(format!("filler{number}")))
        .take_while(|path| std::fs::write(path, "").is_ok())
        .collect();
    let err = fails(&scratch, 1, &["handover"]);
    assert!(err.contains("would not start: state: ") && err.contains("no inode left"), "{err}");
    assert_eq!(run(&scratch, &["status"]).0, Exit::Code(0));
    fillers.iter().for_each(|path| std::fs::remove_file(path).expect("it is ours"));
    daemon.stop();
    volume.remount(&scratch, "remount,ro");
    agrees(&scratch, &["cannot be written: Read-only file system", "-> remount its file system writable"]);
    volume.remount(&scratch, "remount,rw");
    assert_eq!(run(&scratch, &["serve", "--check"]).0, Exit::Code(0));
}

// contract 7.1: what would keep a daemon from starting has exit code 1, the place and what to do
#[test]
fn what_cannot_start_is_told_with_what_to_do() {
    let scratch = Scratch::new();
    let config = scratch.config_file();
    scratch.serve().stop();
    let refused = |args: &[&str], words: &[&str]| {
        let (exit, out, err) = run(&scratch, &[&["serve", "--check"], args].concat());
        assert_eq!((exit, err.as_str()), (Exit::Code(1), ""), "{out}");
        for words in words.iter().chain(&["    -> ", "does not start here"]) {
            assert!(out.contains(words), "{words}: {out}");
        }
    };
    refused(&["--listen", "0.0.0.0:0"], &["there is no token", "acpd token new"]);
    // The last one counts.
    let last = ["serve", "--check", "--listen", "0.0.0.0:0", "--listen", "127.0.0.1:0"];
    assert_eq!(run(&scratch, &last).0, Exit::Code(0));
    let text = std::fs::read_to_string(&config).expect("it is there");
    std::fs::write(&config, format!("{text}\n[server]\nlistenn = 1\n\n[storage]\nnone = 2\n"))
        .expect("writable");
    refused(&[], &["unknown key \"listenn\"", "config.toml:", "unknown key \"none\"", "acpd config check"]);
    std::fs::write(&config, &text).expect("writable");
    let (exit, _, err) = run(&scratch, &["serve", "--json"]);
    assert!(exit == Exit::Code(2) && err.contains("--check"), "{err}");
}

// contract 7.1: a damaged list for hooks keeps a daemon from starting, which says that no session is in it and what to do; that done,
// they are there
#[test]
fn a_damaged_list_for_hooks_is_told_as_that() {
    let scratch = Scratch::new();
    scratch.config_file();
    let mut daemon = scratch.serve();
    let (client, session) = front_end(&scratch);
    leave(client);
    daemon.stop();
    let hooks = scratch.state().join("hooks.db");
    std::fs::write(&hooks, "damaged".repeat(1000)).expect("it is ours");
    let told = ["hooks.db is damaged (file is not a database)", "no session is in it", "move it away"];
    agrees(&scratch, &told);
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["sessions", "list"]] {
        let err = fails(&scratch, 1, command);
        assert!(told.iter().all(|words| err.contains(words)) && !err.contains("empty log"), "{err}");
    }
    std::fs::rename(&hooks, scratch.path("away")).expect("it is ours");
    assert_eq!(ids(&scratch, &[]), [session]);
    scratch.serve().stop();
}

// contract 7.1: nor does it start on a log that a later acpd has brought to a form of its own
#[test]
fn a_newer_log_is_refused() {
    let scratch = Scratch::new();
    scratch.config_file();
    make_database_log(&scratch.state());
    // By SQLite, since the header may also be in a WAL.
    let log = rusqlite::Connection::open(log_database(&scratch.state())).expect("a log");
    let format: u32 = log.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number");
    log.pragma_update(None, "user_version", 99).expect("writable");
    let (exit, out, err) = run(&scratch, &["serve", "--check"]);
    assert_eq!((exit, err.as_str()), (Exit::Code(1), ""), "{out}");
    for words in ["has format 99", "run the newer acpd", "    -> ", "does not start here"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    log.pragma_update(None, "user_version", format).expect("writable");
    drop(log);
    assert_eq!(run(&scratch, &["serve", "--check"]).0, Exit::Code(0));
}
