//! `acpd sessions export` and `import` (contract 7.1, contract 7.3).

use crate::cli::{done, fails, ids, run};
use acpd_e2e::{Exit, LogForm, Scratch, files_below, session_files};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

// contract 7.3: what is exported can be imported elsewhere, and is exported byte-equal there; several stand in one file
#[test]
fn sessions_travel_as_a_file() {
    let (here, there) = (Scratch::new(), Scratch::new());
    let (mut daemon, mut other) = (here.serve(), there.serve());
    done(&here, &["run", "hello"]);
    done(&here, &["run", "stream 2000 500"]);
    let all = ids(&here, &[]);
    let file = here.path("sessions.jsonl");
    let path = file.to_str().expect("text");
    assert_eq!(done(&here, &["sessions", "export", &all[0], &all[1], "--output", path]), "");
    let whole = done(&here, &["sessions", "export", &all[0], &all[1]]);
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), whole);
    let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let out = done(&there, &["sessions", "import", path]);
    let told: Vec<&str> = out.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(told, all);
    assert_eq!(done(&there, &["sessions", "export", &all[0], "-o", "-", &all[1]]), whole);
    // They are there already: each is told, and nothing changes.
    let (exit, out, err) = run(&there, &["sessions", "import", path]);
    assert_eq!((exit, out.as_str()), (Exit::Code(1), ""), "{err}");
    assert_eq!(err.matches("is here already").count(), 2, "{err}");
    let second =
        whole.lines().skip(1).position(|line| line.starts_with("{\"type\"")).expect("two sessions") + 2;
    assert!(
        err.contains(&format!("session 2 of the file (its line 1 is line {second} of the file): ")),
        "{err}"
    );
    let text = done(&there, &["sessions", "export", &all[1], "--format", "markdown"]);
    assert!(text.starts_with("# ") && text.contains("hello"), "{text}");
    daemon.stop();
    other.stop();
}

// contract 7.1: bad input names what is wrong; no file is left half written, and one that is there stays
#[test]
fn what_fails_leaves_no_file() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let file = scratch.path("out.jsonl");
    std::fs::write(&file, "before").expect("a file");
    let path = file.to_str().expect("text");
    fails(&scratch, 4, &["sessions", "export", "zzz", "--output", path]);
    assert_eq!(std::fs::read_to_string(&file).expect("it stays"), "before");
    let directory = scratch.path("");
    let names = || {
        let entries = std::fs::read_dir(&directory).expect("a directory").flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().contains(".part")).count()
    };
    assert_eq!(names(), 0);
    let told = fails(&scratch, 2, &["sessions", "export", "x", "--output", "/no/such/place"]);
    assert!(told.contains("--output /no/such/place: "), "{told}");
    let head = r#"{"type":"acpd-export","version":1,"sessionId":"s-1","agent":"example","cwd":"/w","createdMs":7,"events":1}"#;
    let with_one = |event: &str| format!("{head}\n{event}\n");
    for (content, words) in [
        (String::new(), "line 1: "),
        ("{}\n".to_owned(), "line 1: type: "),
        ("before".to_owned(), "line 1: "),
        ("7\n".to_owned(), "line 1: an object is required, and it is 7"),
        (with_one("[]"), "line 2: an object is required, and it is an array"),
        (with_one("\"x\""), "line 2: an object is required, and it is \"x\""),
        (
            with_one(r#"{"seq":1,"atMs":7,"kind":"created","payload":{"agent":"example"}}"#),
            "line 2: payload: a created event is not readable: cwd: it is missing",
        ),
        (
            with_one(r#"{"seq":1,"atMs":7,"kind":"created","payload":{"agent":7,"cwd":"/w"}}"#),
            "line 2: payload: a created event is not readable: agent: a string is required, and it is 7",
        ),
    ] {
        std::fs::write(&file, &content).expect("a file");
        let told = fails(&scratch, 1, &["sessions", "import", path]);
        assert!(told.contains(words), "{content:?}: {told}");
        for name in ["struct", "field `", "invalid type", "column"] {
            assert!(!told.contains(name), "{content:?}: {told}");
        }
    }
    assert!(fails(&scratch, 2, &["sessions", "import", "/no/such/file"]).contains("/no/such/file: "));
    assert!(ids(&scratch, &[]).is_empty());
    daemon.stop();
}

/// Has every command that writes files try each that sessions depend on, beside a daemon and without.
fn is_refused_for_all(scratch: &Scratch) {
    let mut daemon = scratch.serve();
    done(scratch, &["run", "hello"]);
    let id = &ids(scratch, &[])[0];
    let state = scratch.state();
    let refused = |paths: &[PathBuf]| {
        for path in paths {
            let (path, before) = (path.to_str().expect("text"), file_number(path));
            let told = fails(scratch, 2, &["sessions", "export", id, "--output", path]);
            assert!(
                told.contains(&format!(
                    "--output {path}: a file that acpd keeps sessions in; name another one"
                )),
                "{told}"
            );
            for (command, more) in
                [("config", &["init"][..]), ("token", &["new", "one", "--scope", "observe"])]
            {
                let (exit, out, err) = scratch.run(&[&[command], more, &["--config", path]].concat());
                assert!(exit != Exit::Code(0) && out.is_empty(), "{command} {path}: {err}");
                assert!(err.contains("a file that acpd keeps sessions in"), "{command} {path}: {err}");
            }
            // SQLite takes what is beside a database away with the last connection, and makes it anew.
            let after = file_number(Path::new(path)).filter(|_| !is_beside_database(path));
            assert!(before.is_none() || after.is_none() || before == after, "{path} is another file");
        }
    };
    let databases = LogForm::of(&state).expect("there is a log").databases();
    let mut depended_on = vec![state.join("acpd.reserve"), state.join("daemon.lock")];
    for database in databases {
        let endings = ["", "-wal", "-shm", "-journal", "-open"];
        depended_on.extend(endings.map(|ending| state.join(format!("{database}{ending}"))));
    }
    depended_on.extend(session_files(&state));
    let hosts = files_below(&state.join("hosts"));
    assert!(!hosts.is_empty());
    refused(&[&depended_on[..], &hosts, &files_below(&state.join("claims"))].concat());
    let file = scratch.path("out.jsonl");
    let path = file.to_str().expect("text");
    done(scratch, &["sessions", "export", id, "--output", path]);
    daemon.stop();
    refused(&depended_on);
    done(scratch, &["sessions", "export", id, "--output", path]);
    assert!(std::fs::read_to_string(&file).expect("a file").contains("hello"));
    assert!(databases.iter().all(|database| !state.join(format!("{database}-journal")).exists()));
}

// issue 28: no command puts a file of its own in the place of one that sessions depend on, with a daemon or without
#[test]
fn no_command_writes_over_what_sessions_depend_on() {
    is_refused_for_all(&Scratch::new());
}

fn is_beside_database(path: &str) -> bool {
    ["-wal", "-shm", "-journal"].iter().any(|ending| path.ends_with(ending))
}

fn file_number(path: &Path) -> Option<u64> {
    path.metadata().ok().map(|found| found.ino())
}

// issue 28, RA10: with --details the page has changes of files and outputs, from a daemon and from the log alone; without, none
#[test]
fn a_page_has_details_where_they_are_asked_for() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    done(&scratch, &["run", "--permission-mode", "bypassPermissions", "quirk call-by-id\nrun echo quokka"]);
    let id = &ids(&scratch, &[])[0];
    let page = ["sessions", "export", id, "--format", "markdown"];
    let with = [&page[..], &["--details"]].concat();
    let plain = done(&scratch, &page);
    assert!(!plain.contains("```"), "{plain}");
    let told = done(&scratch, &with);
    let diff = "notes.txt\n@@ -1,1 +1,1 @@\n-old\n+new\n```\n";
    assert!(told.contains("- Tool call: Edit notes.txt") && told.contains(diff), "{told}");
    // The end of a command may be recorded behind the end of its call: it is told at the end of the turn then.
    let output = ": exit code 0\n\n```\nquokka\n```\n";
    assert!(told.contains("- Tool call: echo quokka: completed\n"), "{told}");
    assert!(told.contains("\n- Terminal ") && told.contains(output), "{told}");
    let refused = fails(&scratch, 2, &["sessions", "export", id, "--details"]);
    assert!(refused.contains("--details is of --format markdown only"), "{refused}");
    daemon.stop();
    assert_eq!((done(&scratch, &page), done(&scratch, &with)), (plain, told));
}
