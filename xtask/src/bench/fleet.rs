//! What a fleet costs: the archive beside what an agent says, a request by another node, and lists of all nodes' sessions.
//!
//! Three nodes and one server of NATS, all on this machine. Not here: what is lost when something fails, which tests show.

use super::kept::{Session, post};
use super::programs::Programs;
use super::progress;
use super::report::{Figure, shown};
use super::samples::{median, millis, now};
use super::takeover::{SHARED, with_shared};
use acpd_testkit::{Daemon, Http, NatsServer, PATIENCE, Scratch};
use serde_json::{Value, json};
use std::time::Duration;

/// Bytes of the text of a message.
const TEXT: u64 = 100;
/// Messages of a turn.
const TURN: u64 = 100_000;
/// What must be left of the throughput beside the archive.
const SHARE: f64 = 0.8;
/// Milliseconds that forwarding may add, that a list of all sessions may take, and a new node until it has them.
const FORWARDING: f64 = 2.0;
const LIST: f64 = 200.0;
const NEW_NODE: f64 = 2_000.0;
/// Requests of each kind that count, and lists.
const REQUESTS: usize = 1_000;
const LISTS: usize = 11;
/// Sessions of a page.
const PAGE: usize = 500;

/// A daemon and where its state is.
struct Node {
    daemon: Daemon,
    _scratch: Scratch,
}

impl Node {
    /// A node of a fleet, or a daemon of its own.
    fn start(programs: &Programs, server: Option<&NatsServer>, name: &str) -> Self {
        let section = server.map(|server| format!("[fleet]\nurl = \"{}\"\nnode = \"{name}\"", server.url()));
        let scratch =
            with_shared(programs.scratch().keep("0s"), programs).config(&section.unwrap_or_default());
        Self { daemon: programs.serve(&scratch), _scratch: scratch }
    }

    fn http(&self) -> Http {
        Http::on(self.daemon.connect())
    }
}

pub(super) fn measure(programs: &Programs, sessions: u64, messages: u64) -> (Vec<Figure>, String) {
    let server = NatsServer::start();
    let mut nodes = ["one", "two", "three"].map(|name| Node::start(programs, Some(&server), name));
    let mut figures = vec![archive(programs, &mut nodes[0], messages)];
    progress(format_args!("fleet: {sessions} sessions begin on each node"));
    for node in &nodes {
        let mut http = node.http();
        for _ in 0..sessions {
            let created = post(&mut http, "/v1/sessions", &json!({"agent": SHARED, "cwd": "/"}));
            assert_eq!(created.status, 201, "{}", created.json());
        }
    }
    // And the one that has spoken.
    let all = usize::try_from(sessions).unwrap_or(usize::MAX) * nodes.len() + 1;
    lists(&mut nodes[2].http(), all);
    figures.push(forwarding(&nodes));
    let mut http = nodes[2].http();
    let mut times: Vec<f64> = (0..LISTS).map(|_| millis(list(&mut http).1)).collect();
    figures.push(Figure::new(format!("fleet: a list of {all}"), "ms", [0.0, median(&mut times)]).below(LIST));
    let begun = now();
    let mut new = Node::start(programs, Some(&server), "four");
    lists(&mut new.http(), all);
    let time = millis(begun.elapsed());
    figures.push(Figure::new(format!("fleet: a new node lists {all}"), "ms", [0.0, time]).below(NEW_NODE));
    for node in nodes.iter_mut().chain([&mut new]) {
        node.daemon.stop();
    }
    let remark = format!(
        "fleet: three nodes and one server of NATS on this machine; lists in pages of {PAGE}; a new node from the start of its \
         process; throughput of turns of up to {TURN} messages, next to a daemon that is in no fleet"
    );
    (figures, remark)
}

/// Messages a second into the log, without an archive and with.
fn archive(programs: &Programs, node: &mut Node, messages: u64) -> Figure {
    let mut alone = Node::start(programs, None, "");
    let mut sides = [&alone.daemon, &node.daemon].map(|daemon| Session::begin(daemon, "example", "hi"));
    let mut speeds = [Vec::new(), Vec::new()];
    for turn in 0..=messages.div_ceil(TURN).max(3) {
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let speed = super::kept::stream(&mut sides[side], TURN.min(messages), TEXT);
            // The first is to warm up.
            speeds[side].extend(Some(speed).filter(|_| turn > 0));
        }
    }
    let [without, with] = speeds.each_mut().map(|samples| median(samples));
    let begun = now();
    until(|| lag(&mut node.http()) == 0);
    progress(format_args!(
        "fleet: {} and {} messages/s; the archive had all of them {} ms later",
        shown(without),
        shown(with),
        shown(millis(begun.elapsed()))
    ));
    alone.daemon.stop();
    Figure::new("fleet: throughput with archive", "messages/s", [without, with]).at_least(SHARE)
}

/// The events of a node that are not in the archive.
fn lag(http: &mut Http) -> u64 {
    let metrics = http.request("GET", "/metrics", &[], "").body;
    let metrics = String::from_utf8_lossy(&metrics);
    let lag = metrics.lines().find_map(|line| line.strip_prefix("acpd_fleet_lag_events "));
    lag.and_then(|lag| lag.parse().ok()).expect("a node says how far its archive is behind")
}

/// What a request takes at the session's node, and by another one.
fn forwarding(nodes: &[Node; 3]) -> Figure {
    let session = Session::begin(&nodes[1].daemon, SHARED, "hi");
    let mut doors = [nodes[1].http(), nodes[0].http()];
    until(|| doors[1].request("GET", &session.path, &[], "").status == 200);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..REQUESTS {
        for (door, times) in doors.iter_mut().zip(&mut times) {
            let begun = now();
            assert_eq!(door.request("GET", &session.path, &[], "").status, 200);
            times.push(millis(begun.elapsed()));
        }
    }
    let medians = times.each_mut().map(|samples| median(samples));
    let deleted = post(&mut doors[0], &format!("{}/close", session.path), &Value::Null);
    assert_eq!(deleted.status, 204);
    Figure::new("fleet: a request by another node", "ms", medians).below(FORWARDING)
}

/// Waits until a node lists that many sessions.
fn lists(http: &mut Http, all: usize) {
    until(|| list(http).0 >= all);
}

/// How many sessions a node lists, and how long all pages took.
fn list(http: &mut Http) -> (usize, Duration) {
    let begun = now();
    let (mut count, mut next) = (0, Some(String::new()));
    while let Some(cursor) = next {
        let page = http.request("GET", &format!("/v1/sessions?limit={PAGE}{cursor}"), &[], "");
        assert_eq!(page.status, 200);
        let page = page.json();
        count += page["sessions"].as_array().map_or(0, Vec::len);
        next = page["nextCursor"].as_str().map(|cursor| format!("&cursor={cursor}"));
    }
    (count, begun.elapsed())
}

fn until(mut is_so: impl FnMut() -> bool) {
    let begun = now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE * 4, "it does not come to that");
        #[expect(clippy::disallowed_methods, reason = "looking without a pause would be measured too")]
        std::thread::sleep(Duration::from_millis(20));
    }
}
