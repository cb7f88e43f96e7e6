//! What a fleet costs: a request by another node, and lists of all nodes' sessions.
//!
//! Three nodes and one server of NATS, all on this machine. Not here: the archive, which is in `archive.rs`, and what is lost when
//! something fails, which tests show.

use super::kept::{Session, post};
use super::programs::Programs;
use super::progress;
use super::report::Figure;
use super::samples::{median, millis, now};
use super::takeover::{SHARED, with_shared};
use acpd_testkit::{Daemon, Http, NatsServer, PATIENCE, Scratch};
use serde_json::{Value, json};
use std::time::Duration;

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
pub(super) struct Node {
    pub(super) daemon: Daemon,
    _scratch: Scratch,
}

impl Node {
    /// A node of a fleet, or a daemon of its own.
    pub(super) fn start(programs: &Programs, server: Option<&NatsServer>, name: &str) -> Self {
        let section = server.map(|server| format!("[fleet]\nurl = \"{}\"\nnode = \"{name}\"", server.url()));
        let scratch =
            with_shared(programs.scratch().keep("0s"), programs).config(&section.unwrap_or_default());
        Self { daemon: programs.serve(&scratch), _scratch: scratch }
    }

    pub(super) fn http(&self) -> Http {
        Http::on(self.daemon.connect())
    }
}

pub(super) fn measure(programs: &Programs, sessions: u64) -> (Vec<Figure>, String) {
    let server = NatsServer::start();
    let mut nodes = ["one", "two", "three"].map(|name| Node::start(programs, Some(&server), name));
    progress(format_args!("fleet: {sessions} sessions begin on each node"));
    for node in &nodes {
        let mut http = node.http();
        for _ in 0..sessions {
            let created = post(&mut http, "/v1/sessions", &json!({"agent": SHARED, "cwd": "/"}));
            assert_eq!(created.status, 201, "{}", created.json());
        }
    }
    let all = usize::try_from(sessions).unwrap_or(usize::MAX) * nodes.len();
    lists(&mut nodes[2].http(), all);
    let mut figures = vec![forwarding(&nodes)];
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
         process"
    );
    (figures, remark)
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

pub(super) fn until(mut is_so: impl FnMut() -> bool) {
    let begun = now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE * 4, "it does not come to that");
        #[expect(clippy::disallowed_methods, reason = "looking without a pause would be measured too")]
        std::thread::sleep(Duration::from_millis(20));
    }
}
