//! What the front door of a daemon costs: messages to viewers, round trips, memory.
//!
//! Viewers are threads that read bytes and look for the last message; what they do with them is not measured. The
//! newline counter of the throughput measurement runs in the same minute.

use super::program::{Programs, Side};
use super::report::{Comparison, Measured, Measurement};
use super::statistics::{in_both_places, median, micros, shown};
use super::throughput::stream;
use super::{now, progress};
use acpd_testkit::{Daemon, Events, Http, WebSocket, anonymous_memory, initialize};
use serde_json::Value;
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

/// Bytes of text in a message.
const TEXT: usize = 200;
/// Comes last, as a message of its own.
const LAST: &str = "that-was-all";
/// What must be left of the newline counter's figure with one viewer.
const SHARE: f64 = 0.1;
/// What must be left of that for each of sixteen.
const SIXTEENTH: f64 = SHARE / 3.0;
/// Requests of each kind that count, in turns of [`BLOCK`].
const REQUESTS: usize = 3_000;
const BLOCK: usize = 250;
/// How many times a look at its health a request over HTTP may take.
const TIMES: f64 = 1.5;
/// Sessions whose memory is measured, with a viewer each.
const SESSIONS: usize = 1_000;
/// Sessions that come first, so that what is paid once is not counted.
const FIRST: usize = 20;
/// KiB that one may cost, with its viewer on the shared connection.
const KIB: f64 = 32.0;

const NEW_SESSION: (&str, &str) = ("session/new", r#"{"cwd":"/","mcpServers":[]}"#);

/// A request as text.
fn request(id: u64, method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}")
}

/// An ACP client over a WebSocket.
struct OnWebSocket {
    socket: WebSocket,
    next_id: u64,
}

impl OnWebSocket {
    fn connect(daemon: &Daemon) -> Self {
        Self { socket: WebSocket::initialized(daemon.connect()), next_id: 2 }
    }

    /// A request whose answer is not waited for; its id.
    fn send(&mut self, method: &str, params: &str) -> u64 {
        self.next_id += 1;
        self.socket.text(&request(self.next_id, method, params));
        self.next_id
    }

    fn request(&mut self, method: &str, params: &str) -> Value {
        let id = self.send(method, params);
        let mut answer = self.socket.answer(id);
        assert!(answer.get("result").is_some(), "it answered {method} with {answer}");
        answer["result"].take()
    }

    fn new_session(&mut self) -> String {
        let session =
            self.request(NEW_SESSION.0, NEW_SESSION.1)["sessionId"].as_str().unwrap_or_default().to_owned();
        self.request("_example/ping", &format!("{{\"sessionId\":\"{session}\"}}"));
        session
    }
}

/// An ACP client over HTTP: one socket for requests, one for the events of the connection, one for those of a session.
struct OnHttp {
    posts: Http,
    headers: Vec<(&'static str, String)>,
    events: Events,
    next_id: u64,
}

impl OnHttp {
    /// A connection with one session.
    fn connect(daemon: &Daemon) -> (Self, String) {
        let mut posts = Http::on(daemon.connect());
        let json = ("Content-Type", "application/json");
        let hello = posts.request("POST", "/acp", &[json], &initialize().to_string());
        let id = hello.header("acp-connection-id").expect("a connection has an id").to_owned();
        let headers = vec![(json.0, json.1.to_owned()), ("Acp-Connection-Id", id)];
        let events = events(daemon, "/acp", &headers[1..]);
        let mut client = Self { posts, headers, events, next_id: 2 };
        let id = client.post(NEW_SESSION.0, NEW_SESSION.1);
        let answer: Value = serde_json::from_str(&client.answer(id)).expect("it is JSON");
        let session = answer["result"]["sessionId"].as_str().expect("a session has an id").to_owned();
        client.headers.push(("Acp-Session-Id", session.clone()));
        client.events = self::events(daemon, "/acp", &client.headers[1..]);
        client.ping(&session);
        (client, session)
    }

    /// From writing a request in the session to its acceptance, and to having its answer.
    fn ping(&mut self, session: &str) -> [Duration; 2] {
        let begun = now();
        let id = self.post("_example/ping", &format!("{{\"sessionId\":\"{session}\"}}"));
        let accepted = begun.elapsed();
        self.answer(id);
        [accepted, begun.elapsed()]
    }

    fn post(&mut self, method: &str, params: &str) -> u64 {
        self.next_id += 1;
        self.send(&request(self.next_id, method, params));
        self.next_id
    }

    fn send(&mut self, body: &str) {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = self.posts.request("POST", "/acp", &headers, body);
        assert_eq!(answer.status, 202, "to {body}");
    }

    fn answer(&mut self, id: u64) -> String {
        let mark = format!("\"id\":{id},\"result\":");
        let has_it = |data: &String| data.contains(&mark);
        let answer = self.events.until("the answer", |event| event.data.as_ref().is_some_and(has_it));
        answer.data.unwrap_or_default()
    }
}

fn events(daemon: &Daemon, path: &str, headers: &[(&'static str, String)]) -> Events {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Http::on(daemon.connect()).events(path, &headers).expect("a stream of events")
}

/// Attaches to a session, over a WebSocket or as a stream of events; the socket on which it is shown.
fn watch(daemon: &Daemon, over_websocket: bool, session: &str) -> TcpStream {
    if over_websocket {
        let mut client = OnWebSocket::connect(daemon);
        let params = format!("{{\"sessionId\":\"{session}\",\"cwd\":\"/\",\"mcpServers\":[]}}");
        client.request("session/load", &params);
        return client.socket.stream().try_clone().expect("a socket has many handles");
    }
    let mut events = events(daemon, &format!("/v1/sessions/{session}/events"), &[]);
    events.until("run_started", |event| event.event.as_deref() == Some("run_started"));
    events.socket()
}

/// Reads until `mark` has come, keeping nothing.
fn skip_to(mut stream: TcpStream, mark: &[u8]) {
    let mut space = vec![0; 256 * 1024];
    let mut tail = Vec::new();
    while memchr::memmem::find(&tail, mark).is_none() {
        let count = stream.read(&mut space).expect("the daemon writes");
        assert!(count > 0, "it ended in the middle");
        tail.drain(..tail.len().saturating_sub(mark.len()));
        // The mark is the last that comes, so it is near the end of a read.
        tail.extend_from_slice(&space[count.saturating_sub(4096)..count]);
    }
}

/// Messages a second to 1, 4 and 16 viewers.
pub(super) fn measure_viewers(programs: &Programs, messages: u64, rounds: u64) -> Measured {
    let mut measurements = Vec::new();
    for (way, viewers) in
        ["SSE", "WebSocket"].into_iter().flat_map(|way| [1, 4, 16].map(|count| (way, count)))
    {
        let (mut direct, mut seen) = (Vec::new(), Vec::new());
        let messages = messages / if viewers == 16 { 4 } else { 1 };
        for round in 1..=rounds {
            direct.push(stream(programs, Side::Direct, messages).0);
            let each = flow(programs, way == "WebSocket", viewers, messages);
            progress(format_args!(
                "{way} viewers {viewers}, {round}/{rounds}: {} messages/s each",
                shown(each)
            ));
            seen.push(each);
        }
        let comparison = match (way, viewers) {
            ("SSE", 1) => Comparison::Share { at_least: SHARE },
            (_, 16) => Comparison::Share { at_least: SIXTEENTH },
            _ => Comparison::Times,
        };
        let name = format!("{viewers} {way} viewer{}", if viewers == 1 { "" } else { "s, each" });
        let medians = [median(&mut direct), median(&mut seen)];
        measurements.push(Measurement::new(name, "messages/s", medians, comparison));
    }
    let remark = format!(
        "viewers: the slowest of them, medians of {rounds} rounds of {} messages (a quarter with 16) of {TEXT} bytes \
         of text; direct is the newline counter in the same minute",
        shown(messages as f64)
    );
    (measurements, remark)
}

/// What the slowest of so many viewers gets, in messages a second.
fn flow(programs: &Programs, over_websocket: bool, viewers: usize, messages: u64) -> f64 {
    let scratch = programs.scratch();
    let mut daemon = programs.serve(&scratch);
    let mut driver = OnWebSocket::connect(&daemon);
    let session = driver.new_session();
    let sockets: Vec<_> = (0..viewers).map(|_| watch(&daemon, over_websocket, &session)).collect();
    let text = format!("stream {messages} {TEXT}\\n{LAST}");
    let prompt =
        format!("{{\"sessionId\":\"{session}\",\"prompt\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}");
    let mark = format!("\"text\":\"{LAST}\"");
    let begun = now();
    driver.send("session/prompt", &prompt);
    // Not a viewer itself.
    driver.send("_sandboxagent/session/detach", &format!("{{\"sessionId\":\"{session}\"}}"));
    let watching: Vec<_> = sockets
        .into_iter()
        .map(|socket| {
            let mark = mark.clone();
            std::thread::spawn(move || {
                skip_to(socket, mark.as_bytes());
                begun.elapsed()
            })
        })
        .collect();
    let times = watching.into_iter().map(|viewer| viewer.join().expect("a viewer sees all").as_secs_f64());
    let slowest = times.fold(0.0, f64::max);
    drop(driver);
    daemon.stop();
    messages as f64 / slowest
}

/// Requests over a connection that stays open, next to a look at the daemon's health over one.
pub(super) fn measure_roundtrips(programs: &Programs) -> Measured {
    let remark = format!(
        "round trips over the network: medians of {} requests each, in turns of {BLOCK}; direct is GET /v1/health on a \
         connection that stays open",
        shown(REQUESTS as f64)
    );
    (in_both_places(|place, _| roundtrips(programs, place)), remark)
}

fn roundtrips(programs: &Programs, place: &str) -> Vec<Measurement> {
    const NOTHING: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"$/nothing\",\"params\":{}}";
    progress(format_args!("round trips over the network{place}"));
    let scratch = programs.scratch();
    let mut daemon = programs.serve(&scratch);
    let mut rest = Http::on(daemon.connect());
    let mut get = |path: &str| assert_eq!(rest.request("GET", path, &[], "").status, 200);
    let (mut http, of_http) = OnHttp::connect(&daemon);
    let mut websocket = OnWebSocket::connect(&daemon);
    let of_websocket = websocket.new_session();
    let (path, params) =
        (format!("/v1/sessions/{of_websocket}"), format!("{{\"sessionId\":\"{of_websocket}\"}}"));
    let mut times: [Vec<f64>; 6] = Default::default();
    for round in 0..=REQUESTS / BLOCK {
        for what in [0, 1, 2, 4, 5] {
            for _ in 0..BLOCK {
                let begun = now();
                match what {
                    0 => get("/v1/health"),
                    1 => get(&path),
                    2 => {
                        let [accepted, answered] = http.ping(&of_http);
                        times[2].push(micros(accepted));
                        times[3].push(micros(answered));
                        continue;
                    }
                    4 => drop(websocket.request("_example/ping", &params)),
                    // Something that nobody answers: what HTTP itself costs.
                    _ => http.send(NOTHING),
                }
                times[what].push(micros(begun.elapsed()));
            }
        }
        if round == 0 {
            // To warm up.
            times.iter_mut().for_each(Vec::clear);
        }
    }
    drop((http, websocket));
    daemon.stop();
    let [health, show, accepted, http, websocket, noticed] = times.each_mut().map(|times| median(times));
    let of = |name: &str, acpd, comparison| {
        Measurement::new(format!("{name}{place}"), "us", [health, acpd], comparison)
    };
    vec![
        of("POST of a notification", noticed, Comparison::AtMost { times: TIMES }),
        // On one processor the agent is asked meanwhile.
        of("POST of a request, to its 202", accepted, Comparison::Times),
        of("GET of a session", show, Comparison::Times),
        of("agent and back over HTTP", http, Comparison::Times),
        of("agent and back over WebSocket", websocket, Comparison::Times),
    ]
}

/// What an idle session and its viewers cost the daemon: one viewer of each on one WebSocket, as a client has that works
/// with many sessions, then another of each on an HTTP/1.1 connection of its own.
pub(super) fn measure_memory(programs: &Programs) -> Measured {
    progress(format_args!("memory: {SESSIONS} sessions, a turn and a viewer each"));
    let scratch = programs.scratch();
    let mut daemon = programs.serve(&scratch);
    let mut driver = OnWebSocket::connect(&daemon);
    let mut live = |_| {
        let session = driver.new_session();
        let prompt = format!(
            "{{\"sessionId\":\"{session}\",\"prompt\":[{{\"type\":\"text\",\"text\":\"hello there\"}}]}}"
        );
        driver.request("session/prompt", &prompt);
        session
    };
    let _first: Vec<_> = (0..FIRST).map(&mut live).collect();
    let base = anonymous_memory(daemon.pid());
    let sessions: Vec<_> = (0..SESSIONS).map(&mut live).collect();
    let with_sessions = anonymous_memory(daemon.pid());
    let viewers: Vec<_> = sessions.iter().map(|session| watch(&daemon, false, session)).collect();
    let with_viewers = anonymous_memory(daemon.pid());
    drop((viewers, driver));
    daemon.stop();
    let of = |name, after: u64, before: u64, comparison| {
        let each = after.saturating_sub(before) as f64 / 1024.0 / SESSIONS as f64;
        Measurement::new(name, "KiB", [0.0, each], comparison)
    };
    let measurements = vec![
        of("an idle session and a viewer", with_sessions, base, Comparison::Extra { below: KIB }),
        of("a viewer with a connection", with_viewers, with_sessions, Comparison::ExtraOnly),
    ];
    let base = base / 1024;
    (
        measurements,
        format!("memory: anonymous pages of the daemon, {SESSIONS} sessions; before them {base} KiB"),
    )
}
