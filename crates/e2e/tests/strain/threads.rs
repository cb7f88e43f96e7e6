//! No thread and no process can be had, as at `ulimit -u`, `TasksMax=` or the limit of a container.

use acpd_e2e::{Daemon, Exit, Http, Scratch, acpd, thread_names, until};
use rustix::process::geteuid;
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A user for whom limits hold; they do not for root.
const USER: u32 = 65534;

/// A program as that user runs it, if the test runs as root, and where acpd is for it.
fn limited(scratch: &Scratch, program: &str) -> (Command, PathBuf) {
    if !geteuid().is_root() {
        return (scratch.command(program), acpd());
    }
    // The build may be where only root can go.
    let binary = scratch.path("acpd");
    scratch.copy_acpd(&binary);
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let work = scratch.work();
    for path in [work.parent().expect("it is in the scratch directory"), &work] {
        chown(path, Some(USER), Some(USER)).expect("root may");
    }
    let program = if program.is_empty() { binary.clone() } else { program.into() };
    (as_user(scratch.command(program)), binary)
}

/// A program as that user, if the test runs as root.
fn as_user(mut command: Command) -> Command {
    if geteuid().is_root() {
        command.uid(USER).gid(USER);
    }
    command
}

/// From now on the daemon gets no thread and no process; or does again.
fn starve(scratch: &Scratch, daemon: &Daemon, starved: bool) {
    // As the same user: a limit of another's process is not root's to set everywhere.
    let prlimit = |more: &[&str]| {
        let mut prlimit = as_user(scratch.command("prlimit"));
        let output =
            prlimit.args(["--pid", &daemon.pid().to_string()]).args(more).stderr(Stdio::inherit()).output();
        let output = output.expect("util-linux is there");
        assert!(output.status.success(), "{more:?}");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    let most = if starved { "1".to_owned() } else { prlimit(&["--nproc", "--output=HARD", "--noheadings"]) };
    prlimit(&[&format!("--nproc={most}:")]);
}

// contract 1.3, FR-3: at a limit of processes requests are answered, readiness says why it is false, and the connection
// stays; what serves them was there from the start
#[test]
fn without_another_thread_everything_is_answered() {
    let scratch = Scratch::new();
    let (command, _) = limited(&scratch, "");
    let mut daemon = scratch.serve_by(command, "127.0.0.1:0");
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    let names = thread_names(daemon.pid());
    assert!(names.iter().filter(|name| *name == "event-log-read").count() >= 2, "{names:?}");
    let before = names.len();

    starve(&scratch, &daemon, true);
    assert_eq!(client.call("session/list", &json!({}))["sessions"][0]["sessionId"], json!(session));
    assert_eq!(client.turn(&session, "hello again"), "end_turn");
    let get = |path: &str| {
        let answer = Http::on(daemon.connect()).request("GET", path, &[], "");
        (answer.status, answer.json())
    };
    assert_eq!(get("/v1/sessions").0, 200);
    assert_eq!(get(&format!("/v1/sessions/{session}/events?limit=1")).0, 200);
    let (status, body) =
        until("it says that it is not ready", || Some(get("/v1/ready")).filter(|(status, _)| *status == 503));
    assert_eq!((status, &body["ready"]), (503, &json!(false)));
    assert!(body["reason"].as_str().expect("a reason").contains("no process or thread"), "{body}");
    // An agent cannot be started, which is said, and changes nothing for the rest.
    let refused = client.refused("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
    assert_eq!(refused["code"], -32603, "{refused}");
    assert_eq!(client.turn(&session, "and again"), "end_turn");
    assert!(thread_names(daemon.pid()).len() <= before);

    starve(&scratch, &daemon, false);
    until("it is ready again", || Some(()).filter(|()| get("/v1/ready").0 == 200));
    client.new_session();
    drop(client);
    daemon.stop();
}

// contract 6: what cannot start says why and fails with a code, also where not even a thread can be had
#[test]
fn a_start_without_threads_says_why() {
    let scratch = Scratch::new();
    let (mut command, binary) = limited(&scratch, "sh");
    // dash has another letter for it.
    let script = "ulimit -u 1 2>/dev/null || ulimit -p 1; exec \"$0\" \"$@\"";
    command.args(["-c", script]).arg(binary).args(["serve", "--listen", "127.0.0.1:0", "--state-dir"]);
    command.arg(scratch.state()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().expect("sh starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code().map(Exit::Code), Some(Exit::Code(1)), "{stderr}");
    assert!(stderr.contains("raise the limit of processes"), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}
