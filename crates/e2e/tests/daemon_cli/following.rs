//! `acpd sessions events --follow`, across losses of the connection and restarts of the daemon (contract 1.6).

use crate::cli::{done, fails, front_end, ids, leave, start, stdio};
use crate::cutting_proxy::CuttingProxy;
use acpd_e2e::{Exit, Scratch, Started, until_counted};
use rustix::process::Signal;
use serde_json::Value;

/// Reads lines up to an event of this kind: the numbers that came.
fn until(events: &mut Started, kind: &str, seqs: &mut Vec<u64>) -> Value {
    loop {
        let line = events.next_line().unwrap_or_else(|| panic!("the output ended before {kind}: {seqs:?}"));
        let event: Value = serde_json::from_str(&line).expect("JSON");
        seqs.push(event["seq"].as_u64().expect("a number"));
        if event["kind"] == kind {
            return event;
        }
    }
}

fn each_once(seqs: &[u64]) {
    let expected: Vec<u64> = (1..=seqs.len() as u64).collect();
    assert_eq!(seqs, expected);
}

// contract 6, contract 1.6: every number exactly once across kill -9 and a restart on the same port, to the end
#[test]
fn a_killed_daemon_leaves_no_gap() {
    let scratch = Scratch::new().keep("0s");
    let mut daemon = scratch.serve();
    let (address, url) = (daemon.address().to_string(), daemon.url());
    let (mut client, session) = front_end(&scratch);
    client.tolerant();
    client.prompt(&session, "stream 3000 100\nhello\nhang");
    let words = ["sessions", "events", &session, "--follow", "--json", "--connect", &url];
    let mut from_the_start = start(&scratch, &words);
    let mut seqs = Vec::new();
    until(&mut from_the_start, "update", &mut seqs);
    let mut local = start(&scratch, &words[..5]);
    let mut local_seqs = Vec::new();
    until(&mut local, "update", &mut local_seqs);
    daemon.kill();
    drop(client);
    let mut daemon = scratch.serve_on(&address);
    for (mut events, mut seqs) in [(from_the_start, seqs), (local, local_seqs)] {
        let ended = until(&mut events, "ended", &mut seqs);
        assert_eq!(ended["terminationInfo"]["cause"], "daemon_lost");
        let (exit, rest, err) = events.end();
        assert_eq!((exit, rest.as_str()), (Exit::Code(0), ""), "{err}");
        assert!(err.contains("; reconnecting\n") && err.contains("connected again\n"), "{err}");
        each_once(&seqs);
        let there = done(&scratch, &["sessions", "events", &session, "--json"]);
        assert_eq!(there.lines().count(), seqs.len());
    }
    daemon.stop();
}

// contract 6, contract 1.6: a daemon that is gone before it has answered anything is waited for, as one that goes later; one
// that never was there is an error at once
#[test]
fn a_daemon_that_goes_before_its_first_answer_is_waited_for() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    done(&scratch, &["run", "hello"]);
    let session = ids(&scratch, &[]).remove(0);
    let (address, url, socket) = (daemon.address().to_string(), daemon.url(), daemon.socket());
    daemon.stop();
    let follow = ["sessions", "events", &session[..13], "--follow", "--json"];
    let over_tcp = [&follow[..], &["--connect", &url]].concat();
    let err = fails(&scratch, 4, &over_tcp);
    assert!(err.contains("no daemon answers") && !err.contains("reconnecting"), "{err}");
    // What has ended is read from the log, without a daemon.
    assert!(done(&scratch, &follow).contains("\"kind\":\"ended\""));
    // What takes the first request and is gone.
    let tcp = std::net::TcpListener::bind(&address).expect("nobody listens there");
    let mut remote = start(&scratch, &over_tcp);
    take_a_request(tcp.accept().expect("acpd connects").0);
    let unix = std::os::unix::net::UnixListener::bind(&socket).expect("nobody listens there");
    let mut local = start(&scratch, &follow);
    take_a_request(unix.accept().expect("acpd connects").0);
    drop((tcp, unix));
    let mut daemon = scratch.serve_on(&address);
    for events in [&mut remote, &mut local] {
        let mut seqs = Vec::new();
        until(events, "ended", &mut seqs);
        each_once(&seqs);
    }
    for (events, words) in [(remote, "; reconnecting\n"), (local, "")] {
        let (exit, rest, err) = events.end();
        assert!((exit, rest.as_str()) == (Exit::Code(0), "") && err.contains(words), "{err}");
    }
    fails(&scratch, 4, &["sessions", "events", "no-such-session", "--follow", "--connect", &url]);
    daemon.stop();
}

/// Reads something of a request; the connection is closed behind it.
fn take_a_request(mut client: impl std::io::Read) {
    assert!(client.read(&mut [0; 16]).expect("a request") > 0);
}

// contract 1.6: a connection that is cut again and again, in the middle of whatever it carries, costs nothing
#[test]
fn a_cut_connection_is_taken_up_where_it_was() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let proxy = CuttingProxy::new(daemon.address(), 40_000, 6);
    let (mut client, session) = front_end(&scratch);
    let words = ["sessions", "events", &session, "--follow", "--json", "--connect", &proxy.url()];
    let mut events = start(&scratch, &words);
    client.turn(&session, "stream 2000 100");
    let mut seqs = Vec::new();
    until(&mut events, "turn_ended", &mut seqs);
    done(&scratch, &["sessions", "close", &session]);
    until(&mut events, "ended", &mut seqs);
    let (exit, rest, err) = events.end();
    assert_eq!((exit, rest.as_str(), proxy.cuts()), (Exit::Code(0), "", 6), "{err}");
    each_once(&seqs);
    assert!(seqs.len() > 2000);
    leave(client);
    daemon.stop();
}

// contract 1.6: a session that was taken up again goes on behind the end of its first run
#[test]
fn the_end_of_a_run_is_not_the_end_of_the_session() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    done(&scratch, &["run", "hello"]);
    let session = ids(&scratch, &[]).remove(0);
    let mut client = stdio(&scratch, &[]);
    client.initialize();
    crate::cli::load(&mut client, &scratch, &session);
    client.turn(&session, "again");
    let mut events = start(&scratch, &["sessions", "events", &session, "--follow", "--json"]);
    let mut seqs = Vec::new();
    until(&mut events, "ended", &mut seqs);
    until(&mut events, "turn_ended", &mut seqs);
    done(&scratch, &["sessions", "terminate", &session]);
    until(&mut events, "ended", &mut seqs);
    assert_eq!(events.end().0, Exit::Code(0));
    each_once(&seqs);
    leave(client);
    daemon.stop();
}

// contract 6, SC-5: a daemon that stops ends its sessions, and with them whoever follows them
#[test]
fn it_ends_with_the_session_when_the_daemon_stops() {
    let scratch = Scratch::new().config("[client]\nreconnect = \"0s\"");
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    let mut events = start(&scratch, &["sessions", "events", &session, "--follow", "--json"]);
    let mut seqs = Vec::new();
    until(&mut events, "run_started", &mut seqs);
    daemon.signal(Signal::TERM);
    let ended = until(&mut events, "ended", &mut seqs);
    assert_eq!(ended["terminationInfo"]["cause"], "daemon_shutdown");
    let (exit, _, err) = events.end();
    assert_eq!(exit, Exit::Code(0), "{err}");
    each_once(&seqs);
    client.read_to_end();
    daemon.expect_good_end();
}

// contract 6: one that is deleted meanwhile is an error, and Ctrl-C ends the wait for a daemon that does not come back
#[test]
fn what_does_not_come_back_is_told() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (client, session) = front_end(&scratch);
    let mut away = start(&scratch, &["sessions", "events", &session, "--follow", "--json"]);
    until(&mut away, "run_started", &mut Vec::new());
    let (address, socket) = (daemon.address().to_string(), daemon.socket());
    daemon.kill();
    drop(client);
    // It comes again and again, and is given no answer.
    std::fs::remove_file(&socket).expect("what was killed leaves it");
    let unix = std::os::unix::net::UnixListener::bind(&socket).expect("nobody listens there");
    for _ in 0..2 {
        take_a_request(unix.accept().expect("acpd connects").0);
    }
    drop(unix);
    away.signal(Signal::INT);
    let (exit, _, err) = away.end();
    assert!(exit == Exit::Signal(2) && err.contains("; reconnecting\n"), "{exit:?}: {err}");
    let mut daemon = scratch.serve_on(&address);
    done(&scratch, &["sessions", "delete", &session]);
    fails(&scratch, 4, &["sessions", "events", &session, "--follow"]);
    daemon.stop();
}

// contract 1.6, UP-2: a follower that stalled, and was let go for it, goes on where it was
#[test]
fn a_stalled_follower_loses_nothing() {
    let scratch = Scratch::new().timeout("viewer_stall", "500ms");
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    let mut events = start(&scratch, &["sessions", "events", &session, "--follow", "--json"]);
    let mut seqs = Vec::new();
    until(&mut events, "run_started", &mut seqs);
    client.turn(&session, "stream 20000 500");
    // Nobody reads what it prints, until the daemon has let it go.
    until_counted(daemon.address(), "acpd_viewers{transport=\"sse\"}", 0);
    until(&mut events, "turn_ended", &mut seqs);
    done(&scratch, &["sessions", "close", &session]);
    until(&mut events, "ended", &mut seqs);
    let (exit, _, err) = events.end();
    assert!(exit == Exit::Code(0) && err.contains("reconnecting"), "{err}");
    each_once(&seqs);
    assert!(seqs.len() > 20_000);
    leave(client);
    daemon.stop();
}
