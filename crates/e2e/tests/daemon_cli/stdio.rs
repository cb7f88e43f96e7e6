//! `acpd stdio` as a front end of a daemon: it comes and goes, sessions stay.

use crate::cli::{args, done, front_end, leave, load, state, stdio};
use acpd_e2e::{Exit, PATIENCE, Scratch, acpd};
use rustix::process::Signal;
use serde_json::json;
use std::io::Write;

// SC-6, MC-2, contract 6: end of stdin ends the front end and nothing else; the next one goes on with the session
#[test]
fn sessions_outlive_the_front_end() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    client.turn(&session, "hello");
    let pids = scratch.mark().running("example-agent").len();
    leave(client);
    assert_eq!(state(&scratch, &session), "idle");
    assert_eq!(scratch.mark().running("example-agent").len(), pids);
    let url = daemon.url();
    let mut client = stdio(&scratch, &["--connect", &url]);
    client.initialize();
    load(&mut client, &scratch, &session);
    assert!(client.received().iter().any(|message| message.text() == Some("hello")));
    client.turn(&session, "again");
    // It ends like any other program that is asked to.
    client.signal(Signal::TERM);
    client.read_to_end();
    assert_eq!(client.exit_unread(PATIENCE), Some(Exit::Code(0)));
    assert_eq!(state(&scratch, &session), "idle");
    daemon.stop();
}

// SC-6, MC-2: leaving in the middle of a turn does not cancel it
#[test]
fn a_turn_goes_on_without_the_front_end() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    let go = scratch.path("go");
    let wait = format!("run sh -c \"while ! [ -e {} ]; do sleep 0.01; done; echo went\"", go.display());
    client.prompt(&session, &format!("here\n{wait}\ndone"));
    client.until_text("here");
    leave(client);
    assert_eq!(state(&scratch, &session), "running");
    std::fs::write(&go, "").expect("the scratch directory is writable");
    let mut client = stdio(&scratch, &[]);
    client.initialize();
    load(&mut client, &scratch, &session);
    // The next turn waits for the one before.
    client.turn(&session, "next");
    assert!(client.received().iter().any(|message| message.text().is_some_and(|text| text.contains("done"))));
    leave(client);
    daemon.stop();
}

// contract 6: what was asked right before the end of stdin is answered
#[test]
fn the_last_request_is_answered() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = stdio(&scratch, &[]);
    client.initialize();
    let asked = client.request("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
    client.close_input();
    let session = client.result(&asked)["sessionId"].as_str().expect("an id").to_owned();
    client.read_to_end();
    assert_eq!(client.exit_unread(PATIENCE), Some(Exit::Code(0)));
    assert_eq!(state(&scratch, &session), "idle");
    daemon.stop();
}

// FR-3, contract 6: what is still open when the front end leaves is answered that, and goes on in the daemon
#[test]
fn what_is_open_at_the_end_is_answered() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    let turn = client.prompt(&session, "begun\nstream 100000000 1000");
    client.until_text("begun");
    let waiting = client.prompt(&session, "hello");
    client.close_input();
    for asked in [turn, waiting] {
        let error = client.error(&asked);
        assert!(error["message"].to_string().contains("the daemon may go on"), "{error}");
    }
    client.read_to_end();
    assert_eq!(client.exit_unread(PATIENCE), Some(Exit::Code(0)));
    assert_eq!(state(&scratch, &session), "running");
    daemon.stop();
}

// FR-3, contract 6, contract 7.3: also what was asked while the daemon was away
#[test]
fn what_waits_for_the_daemon_at_the_end_is_answered() {
    let scratch = Scratch::new().keep("0s");
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    let turn = client.prompt(&session, "begun\nhang");
    client.until_text("begun");
    daemon.kill();
    daemon.wait();
    let waiting = client.prompt(&session, "hello");
    client.close_input();
    for asked in [turn, waiting] {
        let error = client.error(&asked);
        assert!(error["message"].to_string().contains("this client left"), "{error}");
    }
    client.expect_good_end();
}

// contract 6, contract 7.2: when the daemon goes away and is not to be tried again, open requests are answered, and the exit
// code is 1
#[test]
fn a_lost_daemon_is_told() {
    let scratch = Scratch::new().keep("0s").config("[client]\nreconnect = \"0s\"");
    for signal in [Signal::KILL, Signal::TERM] {
        let mut daemon = scratch.serve();
        let (mut client, session) = front_end(&scratch);
        let asked = client.prompt(&session, "hello\nhang");
        client.until_text("hello");
        daemon.signal(signal);
        let answer = client.answer(&asked);
        assert!(answer.json["error"].is_object() || signal == Signal::TERM, "{}", answer.raw);
        daemon.wait();
        let (exit, err) = client.ended();
        assert_eq!(exit, Exit::Code(1), "{err}");
        assert!(err.contains("the daemon at ") && err.contains("acpd.sock"), "{err}");
    }
}

// contract 6, FR-1: lines that are too long, not UTF-8 or not JSON are answered as with a host inside, and it goes on
#[test]
fn wrong_lines_are_answered() {
    let scratch = Scratch::new().config("[limits]\nline_bytes = \"64 KiB\"");
    let mut daemon = scratch.serve();
    let mut client = stdio(&scratch, &[]);
    client.initialize();
    for (line, code) in [
        (vec![b'x'; 70_000], -32600),
        (b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}".to_vec(), -32700),
        (b"this is no JSON".to_vec(), -32700),
    ] {
        client.write_line(b"  ");
        client.write_line(line);
        let answer = client.until("the refusal", |message| message.json["id"].is_null());
        assert_eq!(answer.json["error"]["code"], code, "{}", answer.raw);
    }
    let session = client.new_session();
    assert_eq!(client.turn(&session, "still here"), "end_turn");
    leave(client);
    daemon.stop();
}

// contract 6, FR-5: both directions are bounded and independent: a client that does not read can still be heard
#[test]
fn a_client_that_does_not_read_is_heard() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    let (mut other, _) = front_end(&scratch);
    load(&mut other, &scratch, &session);
    let flood = client.prompt(&session, "big 3000000\nstream 20000 500\nhello\nhang");
    // It is more than all the queues on the way to the client, which reads nothing now.
    other.until_text("hello");
    client.notify("session/cancel", &json!({"sessionId": session}));
    // The next turn waits for the one before.
    assert_eq!(other.turn(&session, "next"), "end_turn");
    let mut texts = 0;
    let result = client.result(&flood);
    assert_eq!(result["stopReason"], "cancelled");
    for message in client.since(&flood) {
        texts += usize::from(message.text().is_some());
    }
    assert!(texts > 20_000, "{texts}");
    leave(client);
    leave(other);
    daemon.stop();
}

// contract 6: --embedded hosts in the process itself, beside a daemon
#[test]
fn embedded_is_embedded() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = stdio(&scratch, &["--embedded"]);
    client.initialize();
    let session = client.new_session();
    client.close_input();
    client.read_to_end();
    assert_eq!(client.exit_unread(PATIENCE), Some(Exit::Code(0)));
    // Its end is the session's.
    assert_eq!(state(&scratch, &session), "ended");
    daemon.stop();
}

// contract 6: an agent that the daemon does not have is an error that names it, whoever is asked
#[test]
fn an_unknown_agent_is_refused() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut command = scratch.command(acpd());
    command.args(args(&scratch, &["stdio", "--agent", "nobody"]).iter().map(AsRef::<str>::as_ref));
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("acpd starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let initialize =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    // It may have ended already.
    let _closed = writeln!(stdin, "{initialize}");
    drop(stdin);
    let output = child.wait_with_output().expect("it is our child");
    let said = [output.stdout, output.stderr].concat();
    assert!(String::from_utf8_lossy(&said).contains("nobody"), "{}", String::from_utf8_lossy(&said));
    done(&scratch, &["sessions", "list"]);
    daemon.stop();
}
