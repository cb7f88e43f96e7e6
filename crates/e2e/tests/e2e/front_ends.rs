//! `acpd run`, `acpd agents` and what a wrong configuration says (contract 6).

use acpd_e2e::{Exit, Scratch, containment_here, log_database, run_lines, shell_agent, taking_shell_agent};
use serde_json::Value;
use std::path::PathBuf;

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("scratch paths are text")
}

fn run(scratch: &Scratch, args: &[&str]) -> (Exit, String, String) {
    let (state, config) = (text(scratch.state()), text(scratch.config_file()));
    let mut all = vec!["run", "--state-dir", &state, "--config", &config];
    all.extend(args);
    scratch.run(&all)
}

fn agents(scratch: &Scratch, args: &[&str]) -> (Exit, String, String) {
    let config = text(scratch.config_file());
    let mut all = vec!["agents"];
    all.extend(args);
    all.extend(["--config", &config]);
    scratch.run(&all)
}

// contract 6: 0 for end_turn, and stdout has the answer only
#[test]
fn run_prints_the_answer() {
    let scratch = Scratch::new();
    let (exit, out, err) = run(&scratch, &["think hard\ntool look\nplan a,b\nhello wide world\nagain"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(0), "hello wide world\nagain\n"), "{err}");
    assert!(err.contains("hard") && err.contains("look") && err.contains("end_turn"), "{err}");
}

// contract 6: 1 for a failed agent, with the record
#[test]
fn run_tells_how_the_agent_failed() {
    let scratch = Scratch::new()
        .agent("absent", "/no/such/program", &[])
        .shell("refuses", &shell_agent("while take; do answer '{\"stopReason\":\"refusal\"}'; done"));
    for (args, words) in [
        (vec!["crash"], vec!["exit status: 1", "crash line 1", "crash line 250", "250 lines"]),
        (vec!["signal KILL"], vec!["killed by SIGKILL"]),
        (vec!["exit 0"], vec!["exit status: 0 during a turn"]),
        (vec!["--agent", "absent", "hello"], vec!["/no/such/program"]),
        (vec!["--agent", "refuses", "hello"], vec!["refusal"]),
        (vec!["stream x"], vec!["usage is `stream N [BYTES]`"]),
    ] {
        let (exit, out, err) = run(&scratch, &args);
        assert_eq!((exit, out.as_str()), (Exit::Code(1), ""), "{args:?}: {err}");
        for word in words {
            assert!(err.contains(word), "{args:?}: {word:?} is not in {err}");
        }
        // The same for programs.
        let mut args = args;
        args.insert(0, "--json");
        let (exit, out, err) = run(&scratch, &args);
        assert_eq!((exit, err.lines().count()), (Exit::Code(1), 1), "{args:?}: {err}");
        assert!(err.starts_with("error: ") && !err.contains("terminatedBy"), "{err}");
        let result = run_lines(&out).pop().expect("a result");
        assert!(result["error"]["message"].is_string() || result["stopReason"] == "refusal", "{result}");
    }
}

// contract 6: 2 for usage
#[test]
fn run_tells_wrong_usage_apart() {
    let scratch = Scratch::new();
    for (args, words) in [
        (vec!["--no-such-flag", "hello"], "--no-such-flag"),
        (vec![], "prompt"),
        (vec!["--permission-mode", "yolo", "hello"], "yolo"),
        (vec!["--cwd", "/no/such/directory", "hello"], "/no/such/directory"),
    ] {
        let (exit, out, err) = run(&scratch, &args);
        assert_eq!((exit, out.as_str()), (Exit::Code(2), ""), "{args:?}: {err}");
        assert!(err.contains(words), "{args:?}: {err}");
    }
}

// SU-1: nothing is left behind by `run` either
#[test]
fn run_leaves_nothing_behind() {
    let scratch = Scratch::new();
    for prompt in ["fork\nfork setsid\nignore-sigterm", "fork\ncrash", "fork setsid\nsignal KILL"] {
        run(&scratch, &[prompt]);
        assert_eq!(scratch.mark().processes().len(), 0, "{prompt}");
    }
}

// contract 6
#[test]
fn agents_are_listed_and_checked() {
    let scratch = Scratch::new()
        .agent("absent", "/no/such/program", &[])
        .shell("quits", &["-c".to_owned(), "echo no key found >&2; exit 3".to_owned()]);
    let (exit, out, _) = agents(&scratch, &["list"]);
    assert_eq!(exit, Exit::Code(0));
    for name in ["example", "absent", "quits"] {
        assert!(out.lines().any(|line| line.starts_with(name)), "{out}");
    }
    let (_, out, _) = agents(&scratch, &["list", "--json"]);
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(list["agents"].as_array().unwrap().len(), 3);

    let (exit, out, _) = agents(&scratch, &["check", "example"]);
    assert!(exit == Exit::Code(0) && out.contains("Example") && out.contains("load"), "{out}");
    let (exit, out, _) = agents(&scratch, &["check", "example", "--json"]);
    let checked: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((exit, &checked["initialize"]["protocolVersion"]), (Exit::Code(0), &Value::from(1)));

    for (name, code, words) in [
        ("absent", 1, vec!["command not found: /no/such/program"]),
        ("quits", 1, vec!["exit status: 3", "no key found"]),
        ("exampel", 4, vec!["did you mean \"example\""]),
    ] {
        let (exit, out, err) = agents(&scratch, &["check", name]);
        assert_eq!((exit, out.as_str()), (Exit::Code(code), ""), "{err}");
        assert!(words.iter().all(|words| err.contains(words)), "{err}");
    }
    let (exit, out, _) = agents(&scratch, &["check", "quits", "--json"]);
    let checked: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((exit, &checked["terminationInfo"]["exitCode"]), (Exit::Code(1), &Value::from(3)));
    assert_eq!(checked["containment"], containment_here());
    let (_, out, _) = agents(&scratch, &["check", "absent", "--json"]);
    let checked: Value = serde_json::from_str(&out).unwrap();
    assert!(checked.get("containment").is_none(), "there was no process to see: {checked}");
    assert!(checked["continuity"].is_string(), "{checked}");
}

// contract 6, AU-1: an agent that wants a login is told with what it says of it, also by its name where there is no view
#[test]
fn a_wanted_login_is_told() {
    let methods = r#"[{"id":"a","name":"Account","description":"Run wants login in the terminal"},{"id":"k","name":"Key","type":"env_var","vars":[{"name":"WANTS_KEY"}]}]"#;
    let answer = |data: &str| {
        let error = format!(r#"{{"code":-32000,"message":"Authentication required"{data}}}"#);
        let refuse = format!("printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":%s}}\\n' \"$id\" '{error}'");
        let caps = format!("{{\"protocolVersion\":1,\"agentCapabilities\":{{}},\"authMethods\":{methods}}}");
        taking_shell_agent(&format!("take; answer '{caps}'; take; {refuse}; take"))
    };
    let scratch = Scratch::new()
        .shell("wants", &answer(""))
        .shell("says", &answer(r#","data":{"message":"the key has expired"}"#));
    let (exit, out, err) = run(&scratch, &["--agent", "wants", "hello"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(6), ""), "{err}");
    for words in [
        "✗ the agent wants a login: Authentication required\n",
        "next: `acpd agents login wants",
        ", in one of the ways that wants names",
        "\n    Account: Run wants login in the terminal\n",
        "\n    Key (`env: WANTS_KEY`)\n",
    ] {
        assert!(err.contains(words), "{words:?} is not in {err}");
    }
    let (_, _, err) = run(&scratch, &["--agent", "says", "hello"]);
    assert!(err.contains("\n  the key has expired\n"), "{err}");
    let (exit, _, err) = run(&scratch, &["--json", "--agent", "wants", "hello"]);
    let words =
        "error: agent wants wants a login: Authentication required; log in by `acpd agents login wants";
    let ways = "; Account: Run wants login in the terminal; Key";
    assert!(exit == Exit::Code(6) && err.starts_with(words) && err.contains(ways), "{err}");
    let state = text(scratch.state());
    let (_, out, _) = agents(&scratch, &["check", "wants", "--state-dir", &state]);
    assert!(
        out.contains(
            "login     Account: Run wants login in the terminal\n            Key (`env: WANTS_KEY`)\n"
        ),
        "{out}"
    );
}

// contract 6: no turn has failed where none had begun
#[test]
fn a_session_that_does_not_start_is_no_failed_turn() {
    let scratch = Scratch::new().agent("absent", "/no/such/program", &[]);
    let (_, _, err) = run(&scratch, &["--agent", "absent", "hello"]);
    assert!(
        err.contains("✗ no session was started: agent absent did not start") && !err.contains("turn"),
        "{err}"
    );
}

// contract 6: arguments in the command are told from a command that is missing
#[test]
fn arguments_in_the_command_are_told() {
    let scratch = Scratch::new().agent("both", "sh -c true", &[]).agent("absent", "/no/such acp", &[]);
    let (_, _, err) = agents(&scratch, &["check", "both"]);
    assert!(err.contains("command not found: sh -c true; arguments go into args (looked in "), "{err}");
    let (_, _, err) = agents(&scratch, &["check", "absent"]);
    assert!(err.contains("command not found: /no/such acp ") && !err.contains("args"), "{err}");
}

// contract 6, PE-5: what `acpd run` does not ask is declined, and that is said
#[test]
fn a_declined_elicitation_is_told() {
    let scratch = Scratch::new();
    for more in [&[][..], &["--json"]] {
        let (exit, out, err) = run(&scratch, &[more, &["elicit Which colour?"]].concat());
        assert_eq!(exit, Exit::Code(0), "{err}");
        assert!(out.contains("decline") && err.contains("declined: Which colour?"), "{out}{err}");
    }
}

// contract 6: unknown keys are errors with line and column, whichever command reads them
#[test]
fn configuration_errors_have_a_place() {
    let scratch = Scratch::new();
    for (toml, place, words) in [
        ("[server]\n\n  listn = 5\n", "3:3", "did you mean \"listen\""),
        ("[server]\nlisten = 5\n", "2:10", "expected an address"),
        ("[timeouts]\ninitialize = \"soon\"\n", "2:14", "soon"),
        ("[agents.x]\nargs = []\n", "1:1", "command"),
        ("[agents.x\n", "1:10", ""),
        ("[limits]\nline_bytes = 12\n", "2:14", "4 KiB"),
    ] {
        let path = scratch.path("wrong.toml");
        std::fs::write(&path, toml).unwrap();
        let path = path.to_str().unwrap();
        for command in [vec!["run", "hello"], vec!["stdio", "--agent", "example"], vec!["agents", "list"]] {
            let mut args = command;
            args.extend(["--config", path]);
            let (exit, out, err) = scratch.run(&args);
            assert_eq!((exit, out.as_str()), (Exit::Code(2), ""), "{err}");
            assert!(err.contains(&format!("{path}:{place}: ")) && err.contains(words), "{toml}: {err}");
        }
    }
    let (exit, _, err) = scratch.run(&["stdio", "--agent", "example", "--config", "/no/such/config.toml"]);
    assert!(exit == Exit::Code(2) && err.contains("/no/such/config.toml"), "{err}");
    let (exit, _, err) = scratch.run(&["stdio", "--agent", "nobody"]);
    assert!(exit == Exit::Code(4) && err.contains("nobody") && err.contains("example"), "{err}");
}

// contract 6: a state directory that cannot be used is said so
#[test]
fn an_unusable_state_directory_is_named() {
    let scratch = Scratch::new();
    let file = scratch.path("a-file");
    std::fs::write(&file, "").unwrap();
    let (exit, out, err) = scratch.run(&["run", "--state-dir", file.to_str().unwrap(), "hello"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(1), ""));
    assert!(err.contains("a-file"), "{err}");
    let broken = scratch.path("broken");
    scratch.exempt_logs("one is no database");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(
        broken.join("acpd.db"),
        "this is not a database, and long enough to be looked at".repeat(100),
    )
    .unwrap();
    let (exit, _, err) = scratch.run(&["run", "--state-dir", broken.to_str().unwrap(), "hello"]);
    assert!(exit == Exit::Code(1) && err.contains("acpd.db"), "{err}");
}

// issue 29: an index of sessions that is none is set aside and made again from the sessions' files, by whoever comes first
#[test]
fn an_index_that_is_none_is_made_again() {
    let scratch = Scratch::new();
    let state = scratch.state().display().to_string();
    let config = scratch.config_file().display().to_string();
    let places = ["--state-dir", &*state, "--config", &*config];
    let run = |words: &[&str]| scratch.run(&[&words[..1], &places, &words[1..]].concat());
    let (exit, out, err) = run(&["run", "--format", "quiet", "one"]);
    assert_eq!((exit, out.trim_end()), (Exit::Code(0), "one"), "{err}");
    std::fs::write(log_database(&scratch.state()), "no database, but longer than a header ".repeat(99))
        .unwrap();
    let (exit, out, err) = run(&["run", "--format", "quiet", "two"]);
    assert_eq!((exit, out.trim_end()), (Exit::Code(0), "two"), "{err}");
    let (exit, out, err) = scratch.run(&[&["sessions", "list", "--json"], &places[..]].concat());
    assert_eq!(exit, Exit::Code(0), "{err}");
    assert_eq!(out.matches("\"sessionId\"").count(), 2, "{out}");
}

// contract 6: `acpd run` shows what a command says, as it says it, and how it ended
#[test]
fn run_shows_the_output_of_commands() {
    let scratch = Scratch::new();
    let args = [
        "run",
        "--state-dir",
        &scratch.state().display().to_string(),
        "run sh -c \"echo one; echo two; exit 3\"",
    ]
    .map(str::to_owned);
    let (exit, _, stderr) = scratch.run(&args.each_ref().map(String::as_str));
    assert_eq!(exit, Exit::Code(0), "{stderr}");
    assert!(stderr.contains("  │ one\n  │ two\n  ╵ exit code 3\n"), "{stderr}");
}
