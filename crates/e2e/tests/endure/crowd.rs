//! Many sessions at once, each with an agent and a viewer of its own.
//!
//! `ACPD_SESSIONS` sets how many:
//!
//! ```text
//! ACPD_SESSIONS=1000 cargo test -p acpd-e2e --test endure crowd
//! ```

use crate::rest::Viewer;
use acpd_e2e::{Asked, Client, Deadline, Lateness, PATIENCE, Scratch, Stopwatch, open_files};
use rustix::process::Signal;
use serde_json::json;
use std::collections::HashSet;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

const SESSIONS: usize = 100;
/// Connections that create them, all at once.
const CLIENTS: usize = 8;
const MESSAGES: usize = 100;

// HT-12, SC-5, SU-9, PR-1: hundreds of sessions are created at once, have their turns at once, and end at once; what a
// session held is given back when it ends, and SIGTERM ends the rest within a bound, each viewer being told
#[test]
fn a_crowd_of_sessions_works_and_ends() {
    let many = std::env::var("ACPD_SESSIONS").map_or(SESSIONS, |many| many.parse().expect("it is a number"));
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (address, pid) = (daemon.address(), daemon.pid());
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|_| {
            let mut client = daemon.over_websocket(&scratch, "/acp");
            client.tolerant();
            client.initialize();
            client
        })
        .collect();
    let before = open_files(pid);

    let create = json!({"cwd": scratch.work(), "mcpServers": []});
    let asked: Vec<Asked> =
        (0..many).map(|number| clients[number % CLIENTS].request("session/new", &create)).collect();
    let sessions: Vec<String> = asked
        .iter()
        .enumerate()
        .map(|(number, asked)| {
            let result = clients[number % CLIENTS].result(asked);
            result["sessionId"].as_str().expect("an id").to_owned()
        })
        .collect();
    assert_eq!(sessions.iter().collect::<HashSet<_>>().len(), many);
    assert_eq!(scratch.mark().running("example-agent").len(), many, "one process each");

    thread::scope(|scope| {
        let (turns, ended) = sync_channel(many);
        let mut viewers: Vec<_> = sessions
            .iter()
            .map(|session| {
                let (mut viewer, turns) = (Viewer::of(session), turns.clone());
                scope.spawn(move || {
                    let mut events = viewer.open(address);
                    viewer.read_to("turn_ended", &mut events);
                    turns.send(()).expect("the test waits");
                    viewer.read_to_end(&mut events);
                    viewer.has_chunks(MESSAGES);
                    viewer.last()["terminationInfo"]["cause"].as_str().expect("there is one").to_owned()
                })
            })
            .collect();
        let text = format!("stream {MESSAGES} 200");
        let prompts: Vec<Asked> = sessions
            .iter()
            .enumerate()
            .map(|(number, session)| clients[number % CLIENTS].prompt(session, &text))
            .collect();
        for (number, prompt) in prompts.iter().enumerate() {
            assert_eq!(clients[number % CLIENTS].result(prompt)["stopReason"], "end_turn");
        }
        for _ in 0..many {
            ended.recv_timeout(PATIENCE).expect("each viewer sees the end of its turn");
        }
        let full = open_files(pid);

        // One half ends by itself, and what it held is free again.
        let half = many / 2;
        let close = |(number, session): (usize, &String)| {
            clients[number % CLIENTS].request("session/close", &json!({"sessionId": session}))
        };
        let closes: Vec<Asked> = sessions[..half].iter().enumerate().map(close).collect();
        for (number, close) in closes.iter().enumerate() {
            clients[number % CLIENTS].result(close);
        }
        for viewer in viewers.drain(..half) {
            assert_eq!(viewer.join().expect("it has seen the end"), "client_close");
        }
        let deadline = Deadline::after(PATIENCE);
        while open_files(pid) > full - (full - before) / 2 + CLIENTS {
            assert!(!deadline.is_over(), "before: {before}, full: {full}, now: {}", open_files(pid));
            thread::yield_now();
        }
        assert_eq!(scratch.mark().running("example-agent").len(), many - half);

        let bound = Duration::from_secs(10) + Duration::from_millis(20) * many as u32;
        let (lateness, watch) = (Lateness::measure(), Stopwatch::start());
        daemon.signal(Signal::TERM);
        for viewer in viewers {
            assert_eq!(viewer.join().expect("it has seen the end"), "daemon_shutdown");
        }
        daemon.expect_good_end();
        let (took, late) = (watch.passed(), lateness.end());
        assert!(took <= bound + late, "the end is bounded: {took:?}, {late:?} of it late");
    });
}
