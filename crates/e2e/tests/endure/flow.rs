//! Many messages to viewers of every kind at once: fast ones, slow ones, and ones that are cut off again and again.

use crate::acp::{Connection, attached};
use crate::company::choose;
use crate::rest::{Came, Numbers, Viewer};
use crate::sluggish::Sluggish;
use acpd_e2e::{Client, Daemon, Deadline, Event, Events, PATIENCE, Scratch};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// How many messages flow, with 200 bytes of text each.
const MESSAGES: usize = 20_000;
/// The patience of the daemon with one that takes nothing.
const STALL: &str = "5s";
/// How long the slow ones stay slow: several times that patience.
const SLOW: Duration = Duration::from_secs(18);

/// A client that has made a session, and does not judge what comes.
pub(crate) fn driver(daemon: &Daemon, scratch: &Scratch) -> (Client, String) {
    let mut client = daemon.over_websocket(scratch, "/acp");
    // The schema is judged elsewhere; here there is too much to judge.
    client.tolerant();
    client.initialize();
    let session = client.new_session();
    (client, session)
}

/// A daemon of little patience with its driver, and a way to it by which everything is slow.
fn impatient() -> (Scratch, Daemon, Client, String, Sluggish) {
    let scratch = Scratch::new().timeout("viewer_stall", STALL);
    let daemon = scratch.serve();
    let (client, session) = driver(&daemon, &scratch);
    let sluggish = Sluggish::new(daemon.address());
    (scratch, daemon, client, session, sluggish)
}

/// Lets the slow ones be slow while nothing happens that a test could wait for.
fn be_slow() {
    let (_unused, never) = sync_channel::<()>(0);
    assert!(never.recv_timeout(SLOW).is_err());
}

// UP-2, UP-1, HT-8, contract 1.6: each reader sees every number once and in order, however it reads; one that reads
// slowly is not cut off while it goes on reading, and one that is cut off in the middle of data comes back with its cursor
#[test]
fn every_reader_of_events_sees_each_once() {
    let (_scratch, mut daemon, mut client, session, sluggish) = impatient();
    let (address, slow_address) = (daemon.address(), sluggish.address);
    let [fast, slow, broken] = [(); 3].map(|()| Viewer::of(&session));
    let seen = thread::scope(|scope| {
        let fast = scope.spawn(|| read_fast(fast, address));
        let slow = scope.spawn(move || read_fast(slow, slow_address));
        let broken = scope.spawn(|| read_brokenly(broken, address));
        assert_eq!(client.turn(&session, &format!("stream {MESSAGES} 200")), "end_turn");
        client.call("session/close", &json!({"sessionId": session}));
        // The daemon has nothing left to do but to wait for the slow one.
        be_slow();
        sluggish.hurry();
        [fast, slow, broken].map(|viewer| viewer.join().expect("it has seen everything"))
    });
    let [fast, slow, broken] = seen;
    fast.has_chunks(MESSAGES);
    assert!(fast.seen == slow.seen && fast.seen == broken.seen, "all see the same");
    daemon.stop();
}

fn read_fast(mut viewer: Viewer, address: SocketAddr) -> Viewer {
    let mut events = viewer.open(address);
    viewer.read_to_end(&mut events);
    viewer
}

/// Breaks the connection in the middle of data, again and again.
fn read_brokenly(mut viewer: Viewer, address: SocketAddr) -> Viewer {
    let mut breaks = 0;
    loop {
        let mut events = viewer.open(address);
        let until = viewer.seen.len() + 300 + 97 * breaks;
        while viewer.seen.len() < until {
            let came = viewer.take(&mut events);
            if came == Came::Event("ended".to_owned()) {
                assert!(breaks > 10, "{breaks} breaks");
                return viewer;
            }
            assert!(matches!(came, Came::Event(_)), "{came:?}");
        }
        events.close();
        breaks += 1;
    }
}

// HT-6, HT-8, UP-2: over ACP's streams too each message comes once and in order, per stream
#[test]
fn every_reader_of_streams_sees_each_once() {
    let (scratch, mut daemon, mut client, session, sluggish) = impatient();
    let (address, slow_address) = (daemon.address(), sluggish.address);
    thread::scope(|scope| {
        let viewers = [(address, 500), (slow_address, usize::MAX), (address, usize::MAX)];
        let viewers = viewers.map(|(by, breaks)| {
            let mut connection = Connection::new(address, &session);
            let own = connection.open_own();
            let mut events = connection.open_by(by, None);
            connection.load(&scratch);
            let loaded = events.until("the answer to load", |event| event.json()["id"] == 2);
            scope.spawn(move || {
                let breaks = read_stream(&connection, events, &loaded, breaks);
                drop(own);
                breaks
            })
        });
        assert_eq!(client.turn(&session, &format!("stream {MESSAGES} 200\nover")), "end_turn");
        be_slow();
        sluggish.hurry();
        let breaks = viewers.map(|viewer| viewer.join().expect("it has seen everything"));
        assert_eq!(breaks, [MESSAGES / 500, 0, 0]);
    });
    daemon.stop();
}

pub(crate) fn number(event: &Event) -> u64 {
    let id = event.id.as_ref().unwrap_or_else(|| panic!("every event has an id: {event:?}"));
    id.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).expect("ours have a number")
}

/// Reads until the agent says that it is over, and breaks the connection after each `breaks` chunks. How often it did.
fn read_stream(connection: &Connection, mut events: Events, loaded: &Event, breaks: usize) -> usize {
    let (mut last, mut numbers, mut broken) = (loaded.clone(), Numbers::default(), 0);
    loop {
        let event = events.next_data().expect("it goes on");
        assert_eq!(number(&event), number(&last) + 1, "no hole, and nothing twice");
        last = event;
        let message = last.json();
        let before = numbers.seen();
        numbers.see(&message);
        if numbers.seen() > before && numbers.seen() % breaks == 0 {
            events.close();
            broken += 1;
            events = connection.open(last.id.as_deref());
        }
        if says_over(&message) {
            assert!(numbers.is_whole() && numbers.seen() == MESSAGES, "{numbers:?}");
            return broken;
        }
    }
}

fn says_over(message: &Value) -> bool {
    message["params"]["update"]["content"]["text"].as_str().is_some_and(|text| text.trim() == "over")
}

// UP-2, SE-4, SE-5: a WebSocket that is cut off comes back by load or resume: the history once, then what is new, nothing
// lost between
#[test]
fn a_websocket_comes_back_to_everything() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = driver(&daemon, &scratch);
    let address = daemon.address();
    let half = MESSAGES / 2;
    thread::scope(|scope| {
        let (asks, asked) = sync_channel(1);
        let (resumes, resumed) = sync_channel(1);
        let (scratch, watched) = (&scratch, session.as_str());
        let turn =
            client.prompt(&session, &format!("stream {half} 200\nask edit Go on?\nstream {half} 200\nover"));
        let viewer = scope.spawn(move || {
            // While it flows: cut off in the history, and behind it.
            for chunks in [1, 700, half / 2, half] {
                let mut socket = attached(address, scratch, "session/load", watched);
                let mut numbers = Numbers::default();
                while numbers.seen() < chunks {
                    numbers.see(&socket.next_json().expect("it goes on"));
                }
                assert!(numbers.is_whole());
                break_off(&socket);
            }
            asked.recv_timeout(PATIENCE).expect("the agent asks");
            let mut socket = attached(address, scratch, "session/resume", watched);
            let answer = socket.next_json().expect("an answer");
            assert!(answer["id"] == 2 && answer["result"].is_object(), "no history before it: {answer}");
            resumes.send(()).expect("the test waits");
            let mut numbers = Numbers::default();
            while numbers.seen() < half / 2 {
                numbers.see(&socket.next_json().expect("it goes on"));
            }
            assert!(numbers.is_whole(), "the second half is new, and came from its first on: {numbers:?}");
            break_off(&socket);
            let mut socket = attached(address, scratch, "session/load", watched);
            let mut halves = [(); 2].map(|()| Numbers::default());
            let deadline = Deadline::after(PATIENCE);
            loop {
                assert!(!deadline.is_over());
                let message = socket.next_json().unwrap_or_else(|| panic!("it goes on behind {halves:?}"));
                let second = halves[0].seen() == half;
                halves[usize::from(second)].see(&message);
                if says_over(&message) {
                    return halves.map(|half| (half.is_whole(), half.seen()));
                }
            }
        });
        let is_asked = |message: &acpd_e2e::Message| message.method() == Some("session/request_permission");
        let question = client.until("the question", is_asked);
        asks.send(()).expect("the viewer waits");
        resumed.recv_timeout(PATIENCE).expect("the viewer resumes");
        choose(&mut client, &question, "allow-once");
        assert_eq!(client.result(&turn)["stopReason"], "end_turn");
        assert_eq!(viewer.join().expect("it has seen everything"), [(true, half); 2]);
    });
    daemon.stop();
}

/// Breaks the connection, whatever is on its way.
fn break_off(socket: &acpd_e2e::WebSocket) {
    socket.stream().shutdown(std::net::Shutdown::Both).expect("it is open");
}
