//! The end of acpd itself: agents get their graces, requests get their answers, and nobody holds it up.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Answers what `acpd run` asks for, and once stdin has ended closes its pipes, takes longer than a half-closed
/// connection is tolerated, and leaves a file.
const SLOW_TO_SAVE: &str = r#"
answer() {
    IFS= read -r line; id=${line#*'"id":'}; id=${id%%[,\}]*}
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"
}
answer '{"protocolVersion":1,"agentCapabilities":{}}'
answer '{"sessionId":"s"}'
answer '{"stopReason":"end_turn"}'
while IFS= read -r line; do :; done
exec <&- >&-
sleep 1.3
echo saved > "$1"
"#;

/// Asks acpd to stop instead of answering `initialize`.
const STOPS_ACPD: &str = r#"IFS= read -r line; kill -TERM "$TESTED"; while IFS= read -r line; do :; done"#;

/// Says far more of its session than fits between acpd and a client that does not read.
const FLOODS: &str = r#"
answer() {
    IFS= read -r line; id=${line#*'"id":'}; id=${id%%[,\}]*}
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"
}
answer '{"protocolVersion":1,"agentCapabilities":{}}'
answer '{"sessionId":"s"}'
text=$(head -c 1000000 /dev/zero | tr '\0' x)
for part in 1 2 3 4 5 6 7 8; do
    printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
    printf '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$text"
done
while IFS= read -r line; do :; done
"#;

/// `acpd stdio` in front of a shell agent that knows acpd's process id as `$TESTED`; it has been sent `lines`.
fn stdio(dir: &Path, script: &str, lines: &str) -> Child {
    stdio_after(dir, "", script, lines)
}

/// The same, after the shell has done `first`.
fn stdio_after(dir: &Path, first: &str, script: &str, lines: &str) -> Child {
    let file = dir.join("acpd.toml");
    let config = format!("[agents.shell]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n");
    std::fs::write(&file, config).expect("the scratch directory is writable");
    let acpd = r#"export TESTED=$$; exec "$0" stdio --agent shell --config "$1" --state-dir "$2" "#;
    let acpd = format!("{first}{acpd}");
    #[expect(clippy::disallowed_methods, reason = "acpd itself is what is tested")]
    let mut child = Command::new("sh")
        .args(["-c", &acpd, env!("CARGO_BIN_EXE_acpd")])
        .arg(&file)
        .arg(dir.join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("acpd starts");
    let stdin = child.stdin.as_mut().expect("it was asked for");
    stdin.write_all(lines.as_bytes()).expect("acpd reads");
    child
}

/// More bytes than come before the flood, and half of what a pipe takes.
const PIPE_HAS_MUCH: u64 = 32 * 1024;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
"#;

// contract 6: a terminal that is closed ends acpd in good order, unless whoever started it wants that ignored
#[test]
fn sighup_stops_unless_it_was_ignored_from_the_start() {
    for (prefix, answer) in [("", "error"), ("trap '' HUP; ", "result")] {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let hup = r#"IFS= read -r line; kill -HUP "$TESTED"
            printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}\n'; while IFS= read -r line; do :; done"#;
        let stopped = r#"IFS= read -r line; kill -HUP "$TESTED"; while IFS= read -r line; do :; done"#;
        let script = if prefix.is_empty() { stopped } else { hup };
        let mut acpd = stdio_after(dir.path(), prefix, script, INITIALIZE);
        let mut said = String::new();
        let mut out = std::io::BufReader::new(acpd.stdout.take().expect("it was asked for"));
        std::io::BufRead::read_line(&mut out, &mut said).expect("it is UTF-8");
        assert!(said.contains(&format!(r#""id":1,"{answer}":"#)), "{prefix:?}: {said}");
        drop(acpd.stdin.take());
        assert!(acpd.wait().expect("it ran").success(), "{prefix:?}");
    }
}

// FR-3
#[test]
fn a_request_that_waits_for_a_starting_agent_is_answered_when_acpd_stops() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let mut acpd = stdio(dir.path(), STOPS_ACPD, INITIALIZE);
    // Its stdin stays open, so that only the signal ends it.
    let mut said = String::new();
    acpd.stdout.as_mut().expect("it was asked for").read_to_string(&mut said).expect("it is UTF-8");
    assert!(acpd.wait().expect("it ran").success());
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(r#""id":1,"error":"#), "{said}");
}

// contract 6: SIGTERM stops within a bound
#[test]
fn a_client_that_does_not_read_does_not_hold_up_the_end() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let new = r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
    let mut acpd = stdio(dir.path(), FLOODS, &format!("{INITIALIZE}{new}\n"));
    let stdin = acpd.stdin.take();
    // It is at a message of a megabyte then, of which this is all that anybody takes.
    let is_full = |acpd: &Child| {
        rustix::io::ioctl_fionread(acpd.stdout.as_ref().expect("it was asked for")).expect("it is a pipe")
            > PIPE_HAS_MUCH
    };
    while !is_full(&acpd) {
        assert!(acpd.try_wait().expect("it is ours").is_none(), "it goes on");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&acpd), Signal::TERM).expect("it is ours");
    assert!(acpd.wait().expect("it ran").success());
    drop(stdin);
    let mut said = String::new();
    acpd.stderr.as_mut().expect("it was asked for").read_to_string(&mut said).expect("it is UTF-8");
    assert!(said.contains("did not read"), "the pipe was large enough: {said}");
    assert!(!said.contains("did not end in time"), "{said}");
}

// contract 3.2
#[test]
fn an_agent_may_save_within_its_graces_after_it_closed_its_pipes() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let saved = dir.path().join("saved");
    let config = format!(
        "[timeouts]\nstdin_grace = \"30s\"\n[agents.slow]\ncommand = \"sh\"\nargs = [\"-c\", {SLOW_TO_SAVE:?}, \"sh\", {saved:?}]\n"
    );
    let file = dir.path().join("acpd.toml");
    std::fs::write(&file, config).expect("the scratch directory is writable");
    #[expect(clippy::disallowed_methods, reason = "acpd itself is what is tested")]
    let run = Command::new(env!("CARGO_BIN_EXE_acpd"))
        .args(["run", "--agent", "slow", "--config"])
        .arg(&file)
        .arg("--state-dir")
        .arg(dir.path().join("state"))
        .arg("hello")
        .stdin(Stdio::null())
        .output()
        .expect("acpd runs");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    assert!(saved.exists(), "it was not given its time: {said}");
    assert!(!said.contains("WARN"), "{said}");
}
