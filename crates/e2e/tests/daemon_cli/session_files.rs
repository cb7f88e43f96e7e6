//! `acpd sessions export` and `import` (contract 7.1, contract 7.3).

use crate::cli::{done, fails, ids, run};
use acpd_e2e::{Exit, Scratch};
use std::os::unix::fs::PermissionsExt;

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
    for (content, words) in [("", "line 1"), ("{}\n", "line 1"), ("before", "line 1")] {
        std::fs::write(&file, content).expect("a file");
        let told = fails(&scratch, 1, &["sessions", "import", path]);
        assert!(told.contains(words), "{content:?}: {told}");
    }
    assert!(fails(&scratch, 2, &["sessions", "import", "/no/such/file"]).contains("/no/such/file: "));
    assert!(ids(&scratch, &[]).is_empty());
    daemon.stop();
}
