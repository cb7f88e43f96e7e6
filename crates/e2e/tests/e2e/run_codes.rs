//! The exit codes of `acpd run` (contract 7.1).

use acpd_e2e::{Exit, Scratch};

/// `acpd run`, hosting by itself.
fn run(scratch: &Scratch, args: &[&str]) -> (Exit, String, String) {
    let (state, config) = (scratch.state(), scratch.config_file());
    let places = [state.to_str(), config.to_str()].map(|path| path.expect("scratch paths are text"));
    let mut all = vec!["run", "--state-dir", places[0], "--config", places[1]];
    all.extend(args);
    scratch.run(&all)
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
