//! `acpd run` with a daemon: the same as without one, but that the session is the daemon's.

use crate::cli::{args, done, fails, front_end, ids, json, leave, run, start, state};
use acpd_e2e::{Exit, Gate, PseudoTerminal, Scratch, acpd, cut_off, run_lines, taking_shell_agent};
use rustix::process::Signal;

// contract 6: the answer on stdout, the session closed at the end, and that is said; exit codes as without a daemon
#[test]
fn a_prompt_goes_through_the_daemon() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let url = daemon.url();
    for connect in [&[][..], &["--connect", &url]] {
        let words = [&["run"], connect, &["think hard\nhello wide world"]].concat();
        let (exit, out, err) = run(&scratch, &words);
        assert_eq!((exit, out.as_str()), (Exit::Code(0), "hello wide world\n"), "{err}");
        let session = ids(&scratch, &[]).remove(0);
        let short = &session[session.len() - 8..];
        if let [flag, url] = connect {
            assert!(err.contains(&format!("events {short} {flag} {url}`")), "{err}");
        }
        // contract 7.1: ids of messages are short, and one line is enough
        assert!(err.contains(&format!("\nsession {short} is closed")) && err.contains("end_turn"), "{err}");
        assert!(!err.contains(&session), "{err}");
        assert_eq!(json(&scratch, &["sessions", "show", short])["sessionId"], session.as_str());
        let shown = json(&scratch, &["sessions", "show", &session]);
        assert_eq!(shown["terminationInfo"]["cause"], "client_close", "{shown}");
    }
    // Nothing of it is left running.
    assert!(scratch.mark().running("example-agent").is_empty());
    let (exit, out, err) = run(&scratch, &["run", "--json", "ask edit Write it\nrun sh -c 'echo hi'\nhello"]);
    let lines = run_lines(&out);
    let has = |name: &str| lines.iter().any(|line| line["type"] == name && line["seq"].is_u64());
    assert!(exit == Exit::Code(0) && ["update", "permission", "terminal"].into_iter().all(has), "{out}{err}");

    let (exit, out, err) = run(&scratch, &["run", "crash"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(1), ""));
    assert!(err.contains("crash line 250") && err.contains("exit status: 1"), "{err}");
    assert!(!err.contains("is closed") && !err.contains("lives on"), "{err}");
    let (exit, out, err) = run(&scratch, &["run", "--json", "crash"]);
    let result = run_lines(&out).pop().expect("a result");
    assert_eq!((exit, &result["terminationInfo"]["terminatedBy"]), (Exit::Code(1), &"agent".into()), "{err}");
    // Nobody can be asked.
    let (_, out, err) = run(&scratch, &["run", "ask edit Write it"]);
    assert!(out.contains("reject-once") && err.contains("stdin is not a terminal"), "{out}{err}");
    // A form neither, and that is said once, with a daemon and without.
    for words in [&["run"][..], &["run", "--json"], &["run", "--embedded"]] {
        let (exit, out, err) = run(&scratch, &[words, &["elicit What?"]].concat());
        assert!(exit == Exit::Code(0) && out.contains("elicitation decline"), "{words:?}: {out}{err}");
        let said = "declined: What? (`acpd run` asks for permissions only)\n";
        assert_eq!(err.matches(said).count(), 1, "{words:?}: {err}");
    }
    let count = ids(&scratch, &[]).len();
    let (_, out, err) = run(&scratch, &["run", "--embedded", "hello"]);
    assert!(out == "hello\n" && !err.contains("is closed"), "{err}");
    assert_eq!(ids(&scratch, &[]).len(), count + 1);
    daemon.stop();
}

// contract 6: Ctrl-C cancels the turn, and the session is closed
#[test]
fn an_interrupt_cancels_the_turn() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut running = PseudoTerminal::new().start(&scratch, &["run", "hello\nhang"]);
    running.wait_for("hello");
    running.signal(Signal::INT);
    let (shown, status) = running.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    assert!(shown.contains("cancelling") && shown.contains("is closed"), "{shown}");
    assert!(ids(&scratch, &["--live"]).is_empty());
    daemon.stop();
}

// contract 6: Ctrl-C while the session is being created leaves none behind; a second one does not wait for it
#[test]
fn an_interrupt_before_the_session_closes_it() {
    let scratch = Scratch::new();
    let gate = Gate::new(scratch.path("gate"));
    let script = format!(
        "take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{}}}}'\n\
         take; {}; answer '{{\"sessionId\":\"shell-1\"}}'\ntake",
        gate.line()
    );
    let scratch = scratch.shell("slow", &taking_shell_agent(&script));
    let mut daemon = scratch.serve();
    let words = ["run", "--agent", "slow", "hello"];
    let mut running = PseudoTerminal::new().start(&scratch, &words);
    let arrival = gate.arrival();
    running.signal(Signal::INT);
    running.wait_for("stopping; once more to leave at once");
    arrival.go();
    let (shown, status) = running.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    assert!(shown.contains("is closed") && shown.contains("interrupted"), "{shown}");
    assert_eq!((ids(&scratch, &[]).len(), ids(&scratch, &["--live"]).len()), (1, 0));

    let mut running = PseudoTerminal::new().start(&scratch, &words);
    let _arrival = gate.arrival();
    running.signal(Signal::INT);
    running.wait_for("stopping");
    running.signal(Signal::INT);
    let (shown, status) = running.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    assert!(!shown.contains("is closed"), "{shown}");
    daemon.stop();
}

// contract 6, MC-2: a second Ctrl-C leaves; the session lives on, and it is said how to see it
#[test]
fn a_second_interrupt_leaves() {
    let scratch = Scratch::new().timeout("cancel", "5m");
    let mut daemon = scratch.serve();
    let mut running = PseudoTerminal::new().start(&scratch, &["run", "ignore-cancel\nhello\nhang"]);
    running.wait_for("hello");
    running.signal(Signal::INT);
    running.wait_for("cancelling; Ctrl-C leaves while it goes on");
    running.signal(Signal::INT);
    let (shown, status) = running.end();
    let session = ids(&scratch, &["--live"]).remove(0);
    assert_eq!(status.code(), Some(130), "{shown}");
    let short = &session[session.len() - 8..];
    assert!(shown.contains(&format!("session {short} lives on")) && shown.contains("--follow"), "{shown}");
    assert_eq!(state(&scratch, &session), "running");
    done(&scratch, &["sessions", "terminate", &session]);
    daemon.stop();
}

// contract 1.2, contract 6: whoever has ended a session under its turn is named, and a daemon that stops says so
#[test]
fn an_end_by_another_is_told() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let hang = || {
        let mut running = PseudoTerminal::new().start(&scratch, &["run", "hello\nhang"]);
        running.wait_for("hello");
        running
    };
    for (word, told) in
        [("terminate", "was terminated by command line"), ("close", "was closed by command line")]
    {
        let running = hang();
        done(&scratch, &["sessions", word, &ids(&scratch, &["--live"])[0]]);
        let (shown, status) = running.end();
        assert_eq!(status.code(), Some(1), "{shown}");
        assert!(shown.contains(told) && !shown.contains("is closed"), "{shown}");
    }
    let running = hang();
    daemon.stop();
    let (shown, status) = running.end();
    assert_eq!(status.code(), Some(1), "{shown}");
    // By the end of the connection, by the record, or behind the cancelled turn, whichever comes first.
    let ways = ["acpd ends", "ended with the daemon", "has ended", "server shutting down"];
    let is_told = ways.iter().any(|told| shown.contains(told));
    assert!(is_told && !shown.contains("is closed"), "{shown}");
}

// contract 6, contract 7.2: a daemon that is lost in the middle of a turn is said so, when it is not to be tried again
#[test]
fn a_lost_daemon_is_told() {
    let scratch = Scratch::new().keep("0s").config("[client]\nreconnect = \"0s\"");
    let mut daemon = scratch.serve();
    let mut running = PseudoTerminal::new().start(&scratch, &["run", "hello\nhang"]);
    running.wait_for("hello");
    daemon.kill();
    let (shown, status) = running.end();
    assert_eq!(status.code(), Some(1), "{shown}");
    assert!(shown.contains("the daemon at ") && shown.contains("what became of"), "{shown}");

    let mut daemon = scratch.serve();
    let mut running = start(&scratch, &["run", "--json", "hello\nhang"]);
    assert!(running.next_line().is_some_and(|line| line.contains("session")));
    assert!(running.next_line().is_some_and(|line| line.contains("hello")));
    daemon.kill();
    let (exit, _, err) = running.end();
    assert_eq!(exit, Exit::Code(1), "{err}");
    assert!(err.contains("the daemon at ") && err.contains("what became of"), "{err}");
}

// contract 7.1: 4 for an agent that the daemon does not have; it is said whose list that is and how it is renewed
#[test]
fn an_unknown_agent_is_told() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let own = scratch.path("config.toml");
    let goes_by = format!("the daemon goes by {}", own.display());
    let renewed = "`acpd reload` has it read its configuration anew";
    for more in [&[][..], &["--json"]] {
        let (exit, out, err) = run(&scratch, &[&["run", "--agent", "nobody"], more, &["hello"]].concat());
        assert_eq!((exit, out.lines().count()), (Exit::Code(4), more.len()), "{out}{err}");
        assert!(err.contains("nobody") && err.contains(&goes_by) && err.contains(renewed), "{err}");
        assert!(!err.contains("before its last change") && err.lines().count() == 1, "{err}");
    }
    let err = fails(&scratch, 4, &["run", "--connect", &daemon.url(), "--agent", "nobody", "hello"]);
    assert!(err.contains("`acpd reload`") && err.starts_with("warning: "), "{err}");
    daemon.stop();
}

// contract 6: a configuration that is named beside a daemon, or changed behind its back, is not ignored silently
#[test]
fn a_configuration_that_is_not_the_daemons_is_told() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (own, other) = (scratch.path("config.toml"), scratch.path("other.toml"));
    std::fs::write(&other, "[agents.mine]\ncommand = \"mine\"\n").expect("a file");
    let with = |words: &[&str]| {
        let (state, other) = (scratch.state(), other.display().to_string());
        let mut all = words.to_vec();
        let places = ["--state-dir", state.to_str().expect("text"), "--config", &other];
        all.splice(words.len() - 1..words.len() - 1, places);
        scratch.run(&all)
    };
    let words = format!(
        "the daemon goes by {}, not by {}, which `--embedded` would use;",
        own.display(),
        other.display()
    );
    let (exit, out, err) = with(&["run", "hello"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(0), "hello\n"), "{err}");
    assert!(err.starts_with(&format!("warning: {words}")), "{err}");
    let (exit, out, err) = with(&["agents", "list", "--json"]);
    assert!(exit == Exit::Code(0) && out.contains("example") && !out.contains("mine"), "{out}");
    assert!(err.starts_with(&words), "{err}");
    assert_eq!(run(&scratch, &["agents", "list", "--json"]).2, "");

    // Newer than the reading, whatever the clock of the file system can tell apart.
    let file = std::fs::File::options().append(true).open(&own).expect("the configuration");
    let noted = scratch.state().join("daemon.config").metadata().and_then(|note| note.modified());
    file.set_modified(noted.expect("the daemon notes it") + std::time::Duration::from_secs(1))
        .expect("a time");
    let err = run(&scratch, &["agents", "list", "--json"]).2;
    assert!(err.contains("as it was before its last change; `acpd reload` "), "{err}");
    daemon.stop();
    assert!(!scratch.state().join("daemon.config").exists());
}

// contract 6: the name of the daemon's default agent, which only it knows, is in what is told
#[test]
fn the_daemons_default_agent_is_named() {
    let scratch = Scratch::new().config("[server]\ndefault_agent = \"absent\"").agent(
        "absent",
        "/no/such/program",
        &[],
    );
    let mut daemon = scratch.serve();
    let err = run(&scratch, &["run", "hello"]).2;
    assert!(err.contains("no session was started") && err.contains("`acpd agents check absent`"), "{err}");
    daemon.stop();
}

// contract 6, SU-1: what was left behind and killed is told at the end, with and without a daemon
#[test]
fn killed_leftovers_are_told() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    for (more, prompt, is_told) in [
        (&[][..], "fork setsid", true),
        (&["--embedded"], "fork setsid", true),
        (&[], "hello", false),
        (&["--embedded"], "hello", false),
    ] {
        let err = run(&scratch, &[&["run"], more, &[prompt]].concat()).2;
        let told = err.contains("processes that the agent left behind were killed");
        assert_eq!(told, is_told, "{more:?} {prompt}: {err}");
    }
    daemon.stop();
}

// contract 6: when whoever reads the answer has read enough, the session is closed, as it would be without a daemon
#[test]
fn a_closed_pipe_closes_the_session() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    for more in [&[][..], &["--json"]] {
        let words = [&["run"], more, &["stream 20000\nhang"]].concat();
        let mut command = scratch.command("sh");
        command.args(["-c", r#"{ "$0" "$@"; echo "exit $?" >&2; } | head -c 10"#]).arg(acpd());
        command.args(args(&scratch, &words).iter().map(AsRef::<str>::as_ref));
        let (exit, _, err) = scratch.start_command(command).end();
        assert!(exit == Exit::Code(0) && err.ends_with("exit 1\n"), "{err}");
        assert!(ids(&scratch, &["--live"]).is_empty());
    }
    daemon.stop();
}

// contract 6, MC-1: questions of the agent are asked on the terminal, over the daemon too
#[test]
fn a_person_is_asked_over_the_daemon() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut running = PseudoTerminal::new().start(&scratch, &["run", "ask edit Write it"]);
    running.wait_for("esc cancels");
    running.press("y");
    running.wait_for("permission selected allow-once");
    let (shown, status) = running.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    let (client, _) = front_end(&scratch);
    leave(client);
    daemon.stop();
}

// contract 7.1: at the end of --timeout the turn is cancelled in the daemon, and the session closed
#[test]
fn a_timeout_cancels_the_turn_in_the_daemon() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (_, (exit, out, err)) = cut_off(
        |time| run(&scratch, &["run", "--timeout", time, "begun\nhang"]),
        |(_, out, _)| out.contains("begun"),
    );
    assert_eq!((exit, out.as_str()), (Exit::Code(3), "begun\n"), "{err}");
    assert!(err.contains("the time is up") && err.contains("is closed"), "{err}");
    assert!(ids(&scratch, &["--live"]).is_empty());
    daemon.stop();
}
