//! The exit codes of `acpd run` (contract 7.1).

use acpd_e2e::{Exit, Scratch, acpd, cut_off, taking_shell_agent};
use std::fs::File;
use std::process::{Output, Stdio};

/// `acpd run`, hosting by itself.
fn run(scratch: &Scratch, args: &[&str]) -> (Exit, String, String) {
    let (state, config) = (scratch.state(), scratch.config_file());
    let places = [state.to_str(), config.to_str()].map(|path| path.expect("scratch paths are text"));
    let mut all = vec!["run", "--state-dir", places[0], "--config", places[1]];
    all.extend(args);
    scratch.run(&all)
}

/// `acpd` with an output that takes nothing: stdout or stderr.
fn on_a_full_disk(scratch: &Scratch, args: &[&str], is_stdout: bool) -> Output {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").expect("Linux has it"));
    let mut command = scratch.command(acpd());
    command.args(args).stdin(Stdio::null());
    let [out, err] = if is_stdout { [full(), Stdio::piped()] } else { [Stdio::piped(), full()] };
    let child = command.stdout(out).stderr(err).spawn().expect("acpd starts");
    child.wait_with_output().expect("it is our child")
}

// contract 7.1: what is said beside an answer is no reason to fail when it cannot be said
#[test]
fn a_full_stderr_is_no_failure() {
    let scratch = Scratch::new();
    let (state, config) = (scratch.state(), scratch.config_file());
    let places = ["--state-dir", state.to_str().unwrap(), "--config", config.to_str().unwrap()];
    for more in [&[][..], &["--json"], &["--format", "quiet"]] {
        let args = [&["run"], &places[..], more, &["think hard\nask edit Write it\nhello"]].concat();
        let run = on_a_full_disk(&scratch, &args, false);
        let out = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && out.contains("hello"), "{more:?}: {} {out}", run.status);
    }
}

// contract 7.1: a help that could not be written is a failure, as with every other output, and says why
#[test]
fn a_help_that_is_lost_is_a_failure() {
    let scratch = Scratch::new();
    for args in [&["--help"][..], &["run", "--help"], &["--version"]] {
        let lost = on_a_full_disk(&scratch, args, true);
        let err = String::from_utf8_lossy(&lost.stderr);
        assert!(
            lost.status.code() == Some(1) && err.contains("No space left"),
            "{args:?}: {} {err}",
            lost.status
        );
        assert_eq!(scratch.run(args).0, Exit::Code(0), "{args:?}");
    }
    assert_eq!(on_a_full_disk(&scratch, &["--no-such-flag"], false).status.code(), Some(2));
}

// contract 7.1: what ends a turn is told apart by the exit code, for people and for programs
#[test]
fn the_exit_code_tells_causes_apart() {
    let scratch = Scratch::new();
    for (args, code, words) in [
        (vec!["hello"], 0, ""),
        // The agent goes on without.
        (vec!["ask edit Write it"], 0, "refused"),
        (vec!["stop-reason max_tokens"], 1, "max_tokens"),
        (vec!["stop-reason refusal"], 1, "refusal"),
        (vec!["exit 7"], 1, "exit status: 7"),
        (vec!["--agent", "exampel", "hello"], 4, "did you mean \"example\""),
        (vec!["--connect", "http://127.0.0.1:1", "hello"], 4, "no daemon answers"),
        (vec!["ask edit Write it\nstop-reason refusal"], 5, "refused"),
        (vec!["ask edit Write it\nstop-reason max_tokens"], 1, "refused"),
    ] {
        for more in [&[][..], &["--json"]] {
            let args = [more, &args].concat();
            let (exit, _, err) = run(&scratch, &args);
            assert_eq!(exit, Exit::Code(code), "{args:?}: {err}");
            assert!(err.contains(words), "{args:?}: {words:?} is not in {err}");
        }
    }
}

// contract 7.1: 5 where a refusal ended the turn, also one that is not answered here: by the mode, beside a daemon too
#[test]
fn a_refusal_by_the_mode_has_its_code() {
    let scratch = Scratch::new();
    let refused = ["--permission-mode", "deny", "ask edit Write it\nstop-reason refusal"];
    for (args, code) in [
        (&refused[..], 5),
        (&["--permission-mode", "deny", "ask edit Write it"], 0),
        (&["--permission-mode", "deny", "stop-reason refusal"], 1),
        (&["--permission-mode", "bypassPermissions", "ask edit Write it\nstop-reason refusal"], 1),
    ] {
        for more in [&[][..], &["--json"], &["--format", "quiet"]] {
            let (exit, out, err) = run(&scratch, &[more, args].concat());
            assert_eq!(exit, Exit::Code(code), "{more:?} {args:?}: {out}{err}");
        }
    }
    let mut daemon = scratch.serve();
    for more in [&[][..], &["--json"]] {
        let (exit, out, err) = run(&scratch, &[more, &refused].concat());
        assert_eq!(exit, Exit::Code(5), "{out}{err}");
    }
    daemon.stop();
}

// contract 7.1: at the end of --timeout the turn is cancelled, that is said, and the code is 3; an agent that does not
// even start is left
// quirk silent-turn (agents that retry their model without a sign): nothing ends the turn but a cancel; `acpd run
// --timeout` sends one
#[test]
fn a_turn_that_takes_too_long_is_cancelled() {
    let scratch = Scratch::new().shell("mute", &taking_shell_agent("take; take"));
    for more in [&[][..], &["--json"]] {
        let (time, (exit, out, err)) = cut_off(
            |time| run(&scratch, &[more, &["--timeout", time, "begun\nhang"]].concat()),
            |(_, out, _)| out.contains("begun"),
        );
        assert_eq!(exit, Exit::Code(3), "{err}");
        let told = format!("the time is up (--timeout {time}): ");
        assert!(out.contains("begun") && err.contains(&told), "{out}{err}");
        assert!(err.contains("cancelled"), "{err}");
        let (exit, _, err) = run(&scratch, &[more, &["--timeout", "300ms", "--agent", "mute", "x"]].concat());
        assert!(exit == Exit::Code(3) && err.ends_with("error: the time is up (--timeout 300ms)\n"), "{err}");
        let (exit, _, err) = run(&scratch, &[more, &["--timeout", "1h", "hello"]].concat());
        assert!(exit == Exit::Code(0) && !err.contains("the time is up"), "{err}");
    }
    let (exit, out, err) = run(&scratch, &["--timeout", "soon", "hello"]);
    assert!((exit, out.as_str()) == (Exit::Code(2), "") && err.contains("--timeout"), "{err}");
    assert!(err.contains("such as \"250ms\""), "{err}");
}
