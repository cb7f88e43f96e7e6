//! `acpd run` in a session that is there (contract 7.1), with a host inside and with a daemon.

use crate::cli::{both, done, fails, front_end, ids, json, leave, run, state};
use acpd_e2e::{Exit, PseudoTerminal, Scratch, run_lines};
use serde_json::Value;

/// `acpd run --json`: its lines.
fn lines(scratch: &Scratch, words: &[&str]) -> Vec<Value> {
    let (exit, out, err) = run(scratch, &[&["run", "--json"], words].concat());
    assert_eq!(exit, Exit::Code(0), "{words:?}: {err}");
    run_lines(&out)
}

// contract 7.1: -c goes on with the last session of the directory and agent, --session with any, by its id or a part of it;
// what was before is not told again
#[test]
fn a_session_is_gone_on_with() {
    let scratch = Scratch::new().example("other", &[]);
    both(&scratch, |place| {
        let id = |lines: &[Value]| lines[0]["sessionId"].as_str().expect("an id").to_owned();
        let first = id(&lines(&scratch, &[place, &["first words"]].concat()));
        let last = id(&lines(&scratch, &[place, &["last words"]].concat()));
        lines(&scratch, &[place, &["--agent", "other", "others"]].concat());
        for (flags, session) in [
            (vec!["-c"], &last),
            (vec!["--session", &first[first.len() - 8..]], &first),
            (vec!["--session", &first], &first),
            // It is the last one now.
            (vec!["--continue", "--agent", "example"], &first),
        ] {
            let told = lines(&scratch, &[place, &flags, &["once more"]].concat());
            assert_eq!(&id(&told), session, "{flags:?}");
            let text: Vec<&str> =
                told.iter().filter_map(|l| l["update"]["content"]["text"].as_str()).collect();
            assert_eq!(text, ["once ", "more"], "{flags:?}");
        }
        let (exit, out, err) = run(&scratch, &[&["run"], place, &["--session", &last, "and again"]].concat());
        assert_eq!((exit, out.as_str()), (Exit::Code(0), "and again\n"), "{err}");
    });
}

// contract 7.1: a session that was not named is, before its turn
#[test]
fn the_last_session_is_named() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        done(&scratch, &[&["run"], place, &["--title", "Nightly", "hello"]].concat());
        // One that was never prompted is not gone on with.
        fails(&scratch, 2, &[&["run"], place, &["--model", "none-such", "hello"]].concat());
        let (_, _, err) = run(&scratch, &[&["run"], place, &["-c", "hello"]].concat());
        assert!(err.contains("goes on with session ") && err.contains(", Nightly"), "{err}");
    });
}

// contract 7.1: a session goes on in another directory, as one has to that was moved here
#[test]
fn a_session_goes_on_elsewhere() {
    let scratch = Scratch::new();
    let elsewhere = scratch.path("elsewhere");
    std::fs::create_dir_all(&elsewhere).expect("a directory");
    both(&scratch, |place| {
        lines(&scratch, &[place, &["hello"]].concat());
        let id = ids(&scratch, &[]).remove(0);
        let cwd = elsewhere.to_str().expect("text");
        let again = [&["run"], place, &["--format", "quiet", "--session", &id, "--cwd", cwd, "cwd"]].concat();
        assert!(done(&scratch, &again).contains(cwd));
    });
}

// contract 7.1: 4 where there is no such session, 2 where flags contradict each other; nothing is created
#[test]
fn what_cannot_be_gone_on_with_is_told() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        lines(&scratch, &[place, &["hello"]].concat());
        let elsewhere = scratch.path("elsewhere");
        std::fs::create_dir_all(&elsewhere).expect("a directory");
        let elsewhere = elsewhere.to_str().expect("text");
        for (flags, code, words) in [
            (&["--session", "zzz"][..], 4, "no session has the id \"zzz\""),
            (&["-c", "--cwd", elsewhere], 4, "--continue: there is no session of the agent example in "),
            (&["-c", "--session", "x"], 2, "--continue"),
            (&["--session", "x", "--cwd", "/no/such"], 2, "--cwd"),
            (&["--session", ""], 2, "--session"),
        ] {
            let err = fails(&scratch, code, &[&["run"], place, flags, &["hello"]].concat());
            assert!(err.contains(words) && !err.contains("in time"), "{flags:?}: {err}");
        }
    });
    let mut daemon = scratch.serve();
    let all = ids(&scratch, &[]);
    assert_eq!(all.len(), 2);
    let err = fails(&scratch, 2, &["run", "--session", &all[0], "--agent", "other", "hello"]);
    assert!(err.contains("of the agent example, not other; leave --agent"), "{err}");
    // One that was terminated is over for good: -c takes the one before, and who names it is told.
    let mut running = PseudoTerminal::new().start(&scratch, &["run", "--session", &all[0], "hello\nhang"]);
    running.wait_for("hello");
    done(&scratch, &["sessions", "terminate", &all[0]]);
    assert_eq!(running.end().1.code(), Some(1));
    assert_eq!(lines(&scratch, &["-c", "hello"])[0]["sessionId"], all[1].as_str());
    let (exit, _, err) = run(&scratch, &["run", "--session", &all[0], "hello"]);
    assert!(exit == Exit::Code(1) && err.contains("the session cannot be continued"), "{err}");
    daemon.stop();
}

// contract 7.1, contract 1: a session that is live with others is prompted, and not closed behind their backs
#[test]
fn a_live_session_lives_on() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (client, session) = front_end(&scratch);
    let (exit, out, err) = run(&scratch, &["run", "--session", &session, "hello"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(0), "hello\n"), "{err}");
    assert!(err.contains("lives on") && !err.contains("is closed"), "{err}");
    assert_eq!(state(&scratch, &session), "idle");
    assert_eq!(json(&scratch, &["sessions", "show", &session])["metadata"]["runs"], 1);
    leave(client);
    daemon.stop();
}
