//! The log of what an agent writes to stderr: on request, bounded, for its owner only (SU-4).

use acpd_e2e::{Scratch, shell_agent};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The files of an agent's log, the current one first.
fn files(scratch: &Scratch, agent: &str) -> Vec<PathBuf> {
    let path = scratch.state().join("logs").join(format!("{agent}.log"));
    let numbered = (1..).map(|number| scratch.state().join("logs").join(format!("{agent}.log.{number}")));
    std::iter::once(path).chain(numbered).take_while(|path| path.exists()).collect()
}

/// The lines of all of them, the oldest first, each without its time.
fn lines(scratch: &Scratch, agent: &str) -> Vec<String> {
    let files = files(scratch, agent).into_iter().rev();
    let texts: Vec<String> = files.map(|path| std::fs::read_to_string(path).expect("it is text")).collect();
    let timeless = |line: &str| {
        let (time, rest) = line.split_once(' ').expect("a time comes first");
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        rest.to_owned()
    };
    texts.iter().flat_map(|text| text.lines()).map(timeless).collect()
}

// SU-4: all of stderr, of every process, each line with its process; and nothing without asking
#[test]
fn stderr_is_logged_on_request() {
    let scratch = Scratch::new().example("logged", &[]).config("stderr_log = true");
    for agent in ["example", "logged"] {
        for _ in 0..2 {
            let (mut client, session) = scratch.session(agent);
            assert_eq!(client.turn(&session, "stderr 120"), "end_turn");
            client.finish();
        }
    }
    assert_eq!(files(&scratch, "example"), Vec::<PathBuf>::new());
    let lines = lines(&scratch, "logged");
    assert_eq!(lines.len(), 240);
    let (first, second) = lines.split_at(120);
    for (place, (one, other)) in first.iter().zip(second).enumerate() {
        let (pid, text) = one.split_once(' ').expect("a process id");
        let (another, same) = other.split_once(' ').expect("a process id");
        assert_eq!((text, same), (format!("stderr line {}", place + 1).as_str(), text));
        assert_ne!(pid, another);
    }
    let mode = |path: PathBuf| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(files(&scratch, "logged").remove(0)), 0o600);
    assert_eq!(mode(scratch.state().join("logs")), 0o700);
}

// SU-4: a chatty agent is neither slowed nor does it fill the disk; what was left out is said
// quirk chatter
#[test]
fn the_log_is_bounded() {
    let scratch = Scratch::new().example("logged", &[]).config("stderr_log = true");
    let (mut client, session) = scratch.session("logged");
    assert_eq!(client.turn(&session, "stderr 150000"), "end_turn");
    client.finish();
    let files = files(&scratch, "logged");
    let size = |path: &PathBuf| std::fs::metadata(path).expect("it is there").len();
    assert!(files.len() <= 4 && files.iter().all(|path| size(path) <= 1 << 20), "{files:?}");
    // What was said last is there, or is said to be missing.
    let last = lines(&scratch, "logged").pop().expect("it logged");
    assert!(last.ends_with("stderr line 150000") || last.ends_with("are not here)"), "{last}");
}

// SU-4, TM-1: an unfinished line and invalid bytes are logged too, secrets and control characters are not
#[test]
fn lines_are_made_fit_to_be_read() {
    let script = "take; printf 'key %s \\033[31m\\n\\377 torn' \"$API_KEY\" >&2; exit 1";
    let scratch = Scratch::new()
        .shell("logged", &shell_agent(script))
        .config("stderr_log = true\nenv = { API_KEY = \"sk-0123456789\" }");
    let (mut client, session) = scratch.session("logged");
    let asked = client.prompt(&session, "x");
    client.error(&asked);
    client.finish();
    let texts: Vec<String> = lines(&scratch, "logged")
        .iter()
        .map(|line| line.split_once(' ').expect("a process id").1.to_owned())
        .collect();
    assert_eq!(texts, ["key [redacted] \u{fffd}[31m", "\u{fffd} torn"]);
}

// SU-4: a log that cannot be written does not harm the agent
#[test]
fn a_log_that_cannot_be_written_is_done_without() {
    let scratch = Scratch::new().example("logged", &[]).config("stderr_log = true");
    std::fs::create_dir_all(scratch.state()).expect("the directory is made");
    std::fs::write(scratch.state().join("logs"), "in the way").expect("a file is made");
    let (mut client, session) = scratch.session("logged");
    assert_eq!(client.turn(&session, "stderr 3000"), "end_turn");
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.close_input();
    let (exit, stderr) = client.ended();
    assert_eq!((exit, stderr.matches("cannot write").count()), (acpd_e2e::Exit::Code(0), 1), "{stderr}");
}
