//! `acpd sessions` on a state directory that no daemon serves (contract 7.1).

use crate::cli::{done, fails, ids, json, run};
use acpd_e2e::{Exit, LogForm, PseudoTerminal, Scratch};

use rustix::process::Signal;
// contract 7.1: show, events, export, delete and import work on the log: they say the same as with a daemon
#[test]
fn sessions_are_looked_at_without_a_daemon() {
    let scratch = Scratch::new();
    scratch.config_file();
    done(&scratch, &["run", "--title", "One", "hello"]);
    done(&scratch, &["run", "stream 2000 200"]);
    let all = ids(&scratch, &[]);
    assert_eq!(all.len(), 2);
    let short = &all[1][all[1].len() - 8..];
    let commands: [&[&str]; 6] = [
        &["sessions", "show", short, "--json"],
        &["sessions", "events", short, "--json"],
        &["sessions", "events", &all[0], "--after", "5", "--json"],
        &["sessions", "events", short, "--follow"],
        &["sessions", "export", short, &all[0]],
        &["sessions", "export", short, "--format", "markdown"],
    ];
    let without: Vec<String> = commands.iter().map(|words| done(&scratch, words)).collect();
    let mut daemon = scratch.serve();
    for (words, without) in commands.iter().zip(&without) {
        assert_eq!(&done(&scratch, words), without, "{words:?}");
    }
    daemon.stop();

    let file = scratch.path("sessions.jsonl");
    let file = file.to_str().expect("text");
    std::fs::write(file, &without[4]).expect("a file");
    assert_eq!(done(&scratch, &["sessions", "delete", short]), format!("{} deleted\n", all[1]));
    assert_eq!(ids(&scratch, &[]), all[..1]);
    let (exit, out, err) = run(&scratch, &["sessions", "import", file]);
    assert_eq!(exit, Exit::Code(1), "{err}");
    assert!(out.starts_with(&format!("{} imported, ", all[1])), "{out}");
    assert!(err.contains("is here already"), "the other one: {err}");
    assert_eq!(done(&scratch, commands[4]), without[4], "it is exported as it was");
    assert_eq!(json(&scratch, &["sessions", "show", short])["title"], "One");
}

// contract 7.1: 4 where there is no such session, and for what needs a daemon; nothing is made by looking
#[test]
fn what_needs_a_daemon_says_so() {
    let scratch = Scratch::new();
    scratch.config_file();
    for words in [["sessions", "show", "zzz"], ["sessions", "events", "zzz"], ["sessions", "export", "zzz"]] {
        assert!(fails(&scratch, 4, &words).contains("no session has the id \"zzz\""), "{words:?}");
    }
    assert_eq!(LogForm::of(&scratch.state()), None);
    assert!(fails(&scratch, 4, &["sessions", "cancel", "x"]).contains("no daemon serves"));
}

// contract 7.1: close and terminate name a session that is not there, each of several, and one that has ended
#[test]
fn what_cannot_be_ended_is_named() {
    let scratch = Scratch::new();
    scratch.config_file();
    done(&scratch, &["run", "hello"]);
    let all = ids(&scratch, &[]);
    for deed in ["close", "terminate"] {
        let told = done(&scratch, &["sessions", deed, &all[0]]);
        assert_eq!(told, format!("{} had ended already\n", all[0]));
        let (exit, out, err) = run(&scratch, &["sessions", deed, "zzz", &all[0], "yyy"]);
        assert!(exit == Exit::Code(4) && out.contains("had ended already"), "{out}{err}");
        for id in ["zzz", "yyy"] {
            assert!(err.contains(&format!("no session has the id \"{id}\"")), "{err}");
        }
    }
    assert_eq!(json(&scratch, &["sessions", "show", &all[0]])["terminationInfo"]["reason"], "completed");
}

// contract 7.1: what a killed daemon left has ended in every list, before any host records it
#[test]
fn what_is_lost_is_not_live() {
    let scratch = Scratch::new().keep("0s");
    let mut daemon = scratch.serve();
    let id = done(&scratch, &["run", "--detach", "--keep-open", "hello"]).trim_end().to_owned();
    assert_eq!(ids(&scratch, &["--live"]), [id.as_str()]);
    daemon.kill();
    assert!(ids(&scratch, &["--live"]).is_empty());
    assert_eq!(ids(&scratch, &["--ended"]), [id.as_str()]);
}

// contract 7.1: 130 after Ctrl-C, also while an import waits for more of its file; nothing of it is left
#[test]
fn an_import_is_interrupted() {
    let scratch = Scratch::new();
    let mut running = PseudoTerminal::new().start(&scratch, &["sessions", "import", "-"]);
    // The host is there, and the rest of the file is waited for.
    running.press("no export\n");
    running.wait_for("line 1");
    running.signal(Signal::INT);
    let (shown, exit) = running.end();
    assert_eq!(exit.code(), Some(130), "{shown}");
    assert!(ids(&scratch, &[]).is_empty());
}
