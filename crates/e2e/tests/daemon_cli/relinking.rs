//! Front ends whose connection to the daemon is lost: the client does not notice.

use crate::cli::{answers, args, done, front_end, ids, leave, load, numbers, start, state, stdio};
use crate::cutting_proxy::CuttingProxy;
use acpd_e2e::{Client, Exit, Message, Scratch, acpd};
use rustix::process::Signal;
use serde_json::json;

const ASKS: &str = "session/request_permission";

/// A front end that goes through a proxy.
fn through(proxy: &CuttingProxy, scratch: &Scratch) -> (Client, String) {
    let mut client = stdio(scratch, &["--connect", &proxy.url()]);
    client.initialize();
    let session = client.new_session();
    (client, session)
}

// contract 7.3, SC-6: an editor whose connection is cut ten times in one turn: one answer, each update once, in order, as
// the agent sent it
#[test]
fn a_turn_goes_on_over_cut_connections() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let proxy = CuttingProxy::new(daemon.address(), 60_000, 10);
    let (mut client, session) = through(&proxy, &scratch);
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "stream 20000 60"}]});
    let asked = client.request_as("\"the prompt\"", "session/prompt", &prompt);
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    assert_eq!(numbers(client.since(&asked)), (0..20_000).collect::<Vec<_>>());
    assert_eq!(proxy.cuts(), 10);
    // It goes on, and nothing of acpd's own is left in what the client sees.
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    assert_eq!(answers(&client, "the prompt"), 1);
    assert!(client.received().iter().all(|message| !message.raw.contains("\"event\":{")));
    let mut other = stdio(&scratch, &[]);
    other.initialize();
    load(&mut other, &scratch, &session);
    let lines = |client: &Client| -> Vec<String> {
        let updates = client.received().iter().filter(|message| message.text().is_some());
        let own = updates.filter(|message| message.update_kind() != Some("user_message_chunk"));
        own.map(|message| message.raw.clone()).collect()
    };
    assert_eq!(lines(&client), lines(&other));
    leave(other);
    leave(client);
    daemon.stop();
}

// contract 7.3, PE-3: a question that is open while the connection is lost is put to the client once, and its answer counts;
// one that another client has answered meanwhile is withdrawn
#[test]
fn a_question_outlives_the_connection() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let proxy = CuttingProxy::new(daemon.address(), usize::MAX, 0);
    let (mut client, session) = through(&proxy, &scratch);
    let asked = client.prompt(&session, "ask execute first\nask execute second");
    let first = client.until("the first question", |message| message.method() == Some(ASKS));
    proxy.cut();
    let selected = |question: &Message| {
        let option = question.json["params"]["options"][0]["optionId"].clone();
        let result = json!({"outcome": {"outcome": "selected", "optionId": option}});
        json!({"jsonrpc": "2.0", "id": question.json["id"], "result": result}).to_string()
    };
    client.write_line(selected(&first));
    let second = client.until("the second question", |message| message.method() == Some(ASKS));
    assert_ne!(first.json["id"], second.json["id"]);
    proxy.block(true);
    proxy.cut();
    let (mut other, _) = front_end(&scratch);
    other.call("session/resume", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    let theirs = other.until("the question", |message| message.method() == Some(ASKS));
    other.write_line(selected(&theirs));
    proxy.block(false);
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    let questions = client.since(&asked).iter().filter(|message| message.method() == Some(ASKS)).count();
    assert_eq!(questions, 2);
    let is_it = |message: &&Message| message.method() == Some("$/cancel_request");
    let withdrawn: Vec<_> = client.since(&asked).iter().filter(is_it).collect();
    assert!(withdrawn.len() == 1 && withdrawn[0].json["params"]["requestId"] == second.json["id"]);
    leave(other);
    leave(client);
    daemon.stop();
}

// contract 7.3: what the client sends while there is no connection waits, and a turn that ended meanwhile is answered by its
// end
#[test]
fn what_happens_meanwhile_is_made_up_for() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let proxy = CuttingProxy::new(daemon.address(), usize::MAX, 0);
    let (mut client, session) = through(&proxy, &scratch);
    let go = scratch.path("go");
    let wait = format!("run sh -c \"while ! [ -e {} ]; do sleep 0.01; done; echo went\"", go.display());
    let asked = client.prompt(&session, &format!("here\n{wait}\ndone"));
    client.until_text("here");
    proxy.block(true);
    proxy.cut();
    let next = client.prompt(&session, "next");
    let made = client.request("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
    std::fs::write(&go, "").expect("the scratch directory is writable");
    let (mut other, _) = front_end(&scratch);
    load(&mut other, &scratch, &session);
    // It waits in line behind the turn, if that still runs.
    assert_eq!(other.turn(&session, "between"), "end_turn");
    proxy.block(false);
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    assert_eq!(client.result(&next)["stopReason"], "end_turn");
    let text = client.text_since(&asked, &session);
    assert!(text.contains("went") && text.contains("done"), "{text}");
    assert_eq!((text.matches("between").count(), text.matches("next").count()), (1, 1), "{text}");
    let second = client.result(&made)["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(client.turn(&second, "there"), "end_turn");
    leave(other);
    leave(client);
    daemon.stop();
}

// contract 1.2, contract 7.3: a daemon that is killed and started again: the session's end is told behind the answer, and the
// front end lives on; a fork that may have been made is answered with an error
#[test]
fn a_daemon_that_is_started_again_is_found() {
    let scratch = Scratch::new().keep("0s");
    for signal in [Signal::KILL, Signal::TERM] {
        let mut daemon = scratch.serve();
        let (mut client, session) = front_end(&scratch);
        assert_eq!(client.turn(&session, "before"), "end_turn");
        let asked = client.prompt(&session, "hello\nhang");
        client.until_text("hello");
        daemon.signal(signal);
        daemon.wait();
        let mut daemon = scratch.serve();
        let is_end = |message: &Message| message.method() == Some("_sandboxagent/session/ended");
        if !client.received().iter().any(is_end) {
            client.until("the end", is_end);
        }
        let received = client.received();
        let end = received.iter().position(is_end).expect("it came");
        assert_eq!(received.iter().filter(|message| is_end(message)).count(), 1);
        let answer =
            received[..end].iter().position(|message| message.is_answer() && message.json["id"] == 4);
        assert!(answer.is_some(), "the answer comes before the end");
        if signal == Signal::KILL {
            let error = client.error(&asked);
            assert_eq!(error["data"]["terminationInfo"]["cause"], "daemon_lost", "{error}");
        }
        assert_eq!(state(&scratch, &session), "ended");
        let session = client.new_session();
        assert_eq!(client.turn(&session, "again"), "end_turn");
        leave(client);
        daemon.stop();
    }
}

// contract 7.2: a daemon that stays away is given up after `reconnect`: what is open is answered, and it is said
#[test]
fn a_daemon_that_stays_away_is_given_up() {
    let scratch = Scratch::new().keep("0s");
    let mut daemon = scratch.serve();
    let mut command = scratch.command(acpd());
    command.args(args(&scratch, &["stdio", "--agent", "example"]).iter().map(AsRef::<str>::as_ref));
    command.env("ACPD_CLIENT_RECONNECT", "3s");
    let mut client = scratch.client(command);
    client.initialize();
    let session = client.new_session();
    let asked = client.prompt(&session, "hello\nhang");
    client.until_text("hello");
    daemon.kill();
    daemon.wait();
    let error = client.error(&asked);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("3s")), "{error}");
    let (exit, err) = client.ended();
    assert_eq!(exit, Exit::Code(1), "{err}");
    assert!(err.contains("reconnecting") && err.contains("tried again for 3s"), "{err}");
}

// contract 7.3: `acpd run` goes on over a cut connection, and over a daemon that is started again says how the session ended
#[test]
fn a_run_goes_on() {
    let scratch = Scratch::new().keep("0s");
    let mut daemon = scratch.serve();
    let proxy = CuttingProxy::new(daemon.address(), 60_000, 5);
    let run = start(&scratch, &["run", "--connect", &proxy.url(), "stream 5000 60"]);
    let (exit, out, err) = run.end();
    assert_eq!(exit, Exit::Code(0), "{err}");
    // The number of each chunk stands before its first space.
    let number = |piece: &str| piece.get(piece.len().checked_sub(8)?..)?.parse().ok();
    let numbers: Vec<usize> = out.split(' ').filter_map(number).collect();
    assert_eq!(numbers, (0..5_000).collect::<Vec<_>>());
    let mut run = start(&scratch, &["run", "--json", "hello\nhang"]);
    while !run.next_line().expect("it says hello").contains("hello") {}
    daemon.kill();
    daemon.wait();
    let mut daemon = scratch.serve();
    let (exit, out, err) = run.end();
    assert_eq!(exit, Exit::Code(1), "{err}");
    assert!(out.contains("daemon stopped while the session was live"), "{out} {err}");
    daemon.stop();
}

// PR-9, contract 7.3: an editor's cancel that its daemon did not live to hear reaches the agent, also when the next daemon is killed
// as well; the prompt is answered by the end of its turn, and by nothing before
#[test]
fn a_cancel_outlives_two_daemons() {
    for round in 0..4 {
        let scratch = Scratch::new().keep("60s");
        let mut daemon = scratch.serve();
        let (mut client, session) = front_end(&scratch);
        let asked = client.prompt(&session, "hello\nhang");
        client.until_text("hello");
        // It reads no more, and the cancel is lost with it.
        daemon.suspend();
        client.notify("session/cancel", &json!({"sessionId": session}));
        // The front end answers this itself, behind what it has sent before.
        client.write_line(b"\xff");
        client.until("an answer", |message| message.json["error"]["code"] == -32700);
        daemon.signal(Signal::KILL);
        daemon.wait();
        let mut daemon = scratch.serve();
        if round % 2 == 1 {
            daemon.kill();
            daemon = scratch.serve();
        }
        assert_eq!(client.result(&asked)["stopReason"], "cancelled");
        let events = done(&scratch, &["sessions", "events", &session, "--json"]);
        let of = |kind: &str| events.matches(&format!("\"kind\":\"{kind}\"")).count();
        assert_eq!((of("cancel_requested"), of("turn_ended")), (1, 1), "{events}");
        assert_eq!(state(&scratch, &session), "idle");
        assert_eq!(client.turn(&session, "again"), "end_turn");
        leave(client);
        daemon.stop();
    }
}

// contract 7.1, contract 7.3: `acpd run` is no success before it has shown what the log has, whenever daemons are killed around the end of
// its turn; and the session is closed behind it, by this daemon or the next
#[test]
fn a_run_shows_all_of_its_turn() {
    let lines: Vec<String> = (0..40).map(|number| format!("line-{number}-end")).collect();
    for round in 0..5 {
        let scratch = Scratch::new().keep("60s");
        let mut daemon = scratch.serve();
        let gate = scratch.path("go");
        let wait = format!("run sh -c \"while ! [ -e {} ]; do sleep 0.01; done\"", gate.display());
        let run = start(&scratch, &["run", &format!("first\n{wait}\n{}", lines.join("\n"))]);
        let session = acpd_e2e::until("its turn", || {
            let found = ids(&scratch, &["--live"]).pop()?;
            (state(&scratch, &found) == "running").then_some(found)
        });
        daemon.kill();
        std::fs::write(&gate, "").expect("the scratch directory is writable");
        let mut daemon = scratch.serve();
        for _ in 0..round {
            daemon.kill();
            daemon = scratch.serve();
        }
        let (exit, out, err) = run.end();
        assert_eq!(exit, Exit::Code(0), "{err}");
        for line in &lines {
            assert!(out.contains(line.as_str()), "{line}: {out} {err}");
        }
        assert_eq!(state(&scratch, &session), "ended", "{err}");
        daemon.stop();
    }
}

// contract 7.1, contract 7.3: a daemon that goes away in the first moment is waited for, as later on; without one, that is said by code 4
#[test]
fn a_run_is_not_lost_in_its_first_moment() {
    let scratch = Scratch::new();
    // Nobody else is given it meanwhile.
    let address = scratch.hold_port();
    let listener = std::net::TcpListener::bind(address).expect("nobody listens there");
    // It takes the connection and is gone.
    let gone = std::thread::spawn(move || drop(listener.accept().expect("a connection")));
    let run = start(&scratch, &["run", "--connect", &format!("http://{address}"), "hello"]);
    gone.join().expect("it came");
    let mut daemon = scratch.serve_on(&address.to_string());
    let (exit, out, err) = run.end();
    assert_eq!((exit, out.contains("hello")), (Exit::Code(0), true), "{err}");
    daemon.stop();
    let address = scratch.hold_port();
    let listener = std::net::TcpListener::bind(address).expect("nobody listens there");
    let url = format!("http://{address}");
    let gone = std::thread::spawn(move || drop(listener.accept().expect("a connection")));
    let mut command = scratch.command(acpd());
    command.args(args(&scratch, &["run", "--connect", &url, "hello"]).iter().map(AsRef::<str>::as_ref));
    command.env("ACPD_CLIENT_RECONNECT", "1s");
    let (exit, _, err) = scratch.start_command(command).end();
    gone.join().expect("it came");
    assert_eq!(exit, Exit::Code(4), "{err}");
}
