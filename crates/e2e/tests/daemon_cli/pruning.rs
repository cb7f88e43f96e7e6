//! `acpd sessions prune` (contract 7.1).

use crate::cli::{done, fails, front_end, ids, json, leave, run};
use acpd_e2e::{Exit, LogForm, Scratch};

// contract 7.1: without a daemon and with one the same: what would go is shown, and then goes; what is live stays
#[test]
fn old_sessions_are_removed() {
    let scratch = Scratch::new();
    scratch.config_file();
    for text in ["one", "two", "three"] {
        done(&scratch, &["run", "--title", text, text]);
    }
    let all = ids(&scratch, &[]);
    let dry = ["sessions", "prune", "--older-than", "0s", "--dry-run"];
    let (exit, out, err) = run(&scratch, &dry);
    assert_eq!(exit, Exit::Code(0), "{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("ID ") && lines[0].contains("SIZE") && lines.len() == 4, "{out}");
    assert!(lines[1].contains("one") && lines[3].contains("three"), "the oldest first: {out}");
    assert!(err.starts_with("3 sessions, ") && err.contains("would be removed"), "{err}");
    let found = json(&scratch, &dry);
    let sizes: Vec<u64> = found["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["bytes"].as_u64().expect("bytes"))
        .collect();
    assert_eq!(found["bytes"], sizes.iter().sum::<u64>());
    assert_eq!(ids(&scratch, &[]), all, "nothing was removed");

    let out = done(&scratch, &["sessions", "prune", "--older-than", "1d"]);
    assert_eq!(out, "");
    assert_eq!(ids(&scratch, &[]), all);
    let most = (sizes.iter().sum::<u64>() - 1).to_string();
    let out = done(&scratch, &["sessions", "prune", "--keep-bytes", &most]);
    assert!(out.starts_with("removed 1 session, "), "{out}");
    assert_eq!(ids(&scratch, &[]), all[..2]);

    let mut daemon = scratch.serve();
    let (client, live) = front_end(&scratch);
    let (exit, out, err) = run(&scratch, &dry);
    assert_eq!((exit, out.lines().count()), (Exit::Code(0), 3), "{out}{err}");
    let removed = json(&scratch, &["sessions", "prune", "--older-than", "0s"]);
    assert_eq!(removed["sessions"].as_array().map(Vec::len), Some(2), "{removed}");
    assert_eq!(ids(&scratch, &[]), [live]);
    fails(&scratch, 4, &["sessions", "show", &all[0]]);
    leave(client);
    daemon.stop();
}

// contract 7.1, contract 7.2: without a limit it goes by the configuration; where that keeps all, it says what to do
#[test]
fn the_configuration_says_which() {
    let scratch = Scratch::new();
    scratch.config_file();
    done(&scratch, &["run", "one"]);
    for words in [&["sessions", "prune"][..], &["sessions", "prune", "--dry-run", "--json"]] {
        let told = fails(&scratch, 2, words);
        assert!(told.contains("--older-than") && told.contains("keep_for"), "{told}");
    }
    let mut daemon = scratch.serve();
    assert!(fails(&scratch, 2, &["sessions", "prune"]).contains("keep_for"));
    daemon.stop();
    let scratch = scratch.config("[storage]\nkeep_for = \"1ms\"");
    scratch.config_file();
    assert!(done(&scratch, &["sessions", "prune"]).starts_with("removed 1 session, "));
    let (exit, out, err) = run(&scratch, &["sessions", "prune"]);
    assert_eq!((exit, &*out, err.trim_end()), (Exit::Code(0), "", "nothing to remove"));
}

// contract 7.1: bad input names the flag and the fix, and nothing is made or removed
#[test]
fn wrong_limits_are_refused() {
    let scratch = Scratch::new();
    scratch.config_file();
    for (words, told) in [
        (["--older-than", "a month"], "--older-than"),
        (["--older-than", "never"], "30d"),
        (["--older-than", "1.5d"], "--older-than"),
        (["--keep-bytes", "1 apple"], "--keep-bytes"),
        (["--keep-bytes", "1.5GiB"], "1GiB"),
    ] {
        let err = fails(&scratch, 2, &[&["sessions", "prune"][..], &words].concat());
        assert!(err.contains(told), "{words:?}: {err}");
    }
    assert_eq!(done(&scratch, &["sessions", "prune", "--keep-bytes", "1GiB"]), "");
    assert_eq!(LogForm::of(&scratch.state()), None);
}
