//! What the front door of a daemon costs: messages to viewers, round trips, memory.
//!
//! Viewers are threads that read bytes and look for the last message; what they do with them is not measured. The
//! newline counter of the throughput measurement runs in the same minute.

use super::client::{Client, Wire, events, prompt};
use super::pipes::stream;
use super::programs::{Programs, Side};
use super::progress;
use super::report::{Figure, shown};
use super::samples::{in_both_places, median, micros, now};
use acpd_testkit::{Daemon, Http, anonymous_memory};
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;

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
const PING: &str = "_example/ping";
/// Something that nobody answers: what HTTP itself costs.
const NOTHING: &str = r#"{"jsonrpc":"2.0","method":"$/nothing","params":{}}"#;

/// Messages a second to 1, 4 and 16 viewers.
pub(super) fn viewers(programs: &Programs, messages: u64, rounds: u64) -> (Vec<Figure>, String) {
    let mut figures = Vec::new();
    for (way, viewers) in
        ["SSE", "WebSocket"].into_iter().flat_map(|way| [1, 4, 16].map(|count| (way, count)))
    {
        let (mut direct, mut seen) = (Vec::new(), Vec::new());
        let messages = messages / if viewers == 16 { 4 } else { 1 };
        for round in 1..=rounds {
            direct.push(stream(programs, Side::Direct, messages));
            let each = flow(programs, way == "WebSocket", viewers, messages);
            progress(format_args!(
                "{way} viewers {viewers}, {round}/{rounds}: {} messages/s each",
                shown(each)
            ));
            seen.push(each);
        }
        let name = format!("{viewers} {way} viewer{}", if viewers == 1 { "" } else { "s, each" });
        let figure = Figure::new(name, "messages/s", [median(&mut direct), median(&mut seen)]);
        figures.push(match (way, viewers) {
            ("SSE", 1) => figure.at_least(SHARE),
            (_, 16) => figure.at_least(SIXTEENTH),
            _ => figure,
        });
    }
    let remark = format!(
        "viewers: the slowest of them, medians of {rounds} rounds of {messages} messages (a quarter with 16) of {TEXT} \
         bytes of text; direct is the newline counter in the same minute"
    );
    (figures, remark)
}

/// What the slowest of so many viewers gets, in messages a second.
fn flow(programs: &Programs, over_websocket: bool, viewers: usize, messages: u64) -> f64 {
    let scratch = programs.scratch();
    let mut daemon = programs.serve(&scratch);
    let mut driver = Client::over_websocket(&daemon);
    let session = driver.settled_session();
    let sockets: Vec<_> = (0..viewers).map(|_| watch(&daemon, over_websocket, &session)).collect();
    let prompt = prompt(&session, &format!("stream {messages} {TEXT}\n{LAST}")).to_string();
    let begun = now();
    driver.send("session/prompt", &prompt);
    // Not a viewer itself.
    driver.send("_sandboxagent/session/detach", &json!({"sessionId": session}).to_string());
    let watch = |socket| {
        std::thread::spawn(move || {
            skip_to(socket, format!("\"text\":\"{LAST}\"").as_bytes());
            begun.elapsed().as_secs_f64()
        })
    };
    let watching: Vec<_> = sockets.into_iter().map(watch).collect();
    let times = watching.into_iter().map(|viewer| viewer.join().expect("a viewer sees all"));
    let slowest = times.fold(0.0, f64::max);
    drop(driver);
    daemon.stop();
    messages as f64 / slowest
}

/// Attaches to a session, over a WebSocket or as a stream of events; the socket on which it is shown.
fn watch(daemon: &Daemon, over_websocket: bool, session: &Value) -> TcpStream {
    if over_websocket {
        let mut client = Client::over_websocket(daemon);
        client.request("session/load", &json!({"sessionId": session, "cwd": "/", "mcpServers": []}));
        return client.wire.socket.stream().try_clone().expect("a socket has many handles");
    }
    let mut events = events(daemon, &format!("/v1/sessions/{}/events", text(session)), &[]);
    events.until("run_started", |event| event.event.as_deref() == Some("run_started"));
    events.socket()
}

fn text(session: &Value) -> &str {
    session.as_str().expect("an id is text")
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

/// Requests over a connection that stays open, next to a look at the daemon's health over one.
pub(super) fn roundtrips(programs: &Programs) -> (Vec<Figure>, String) {
    let remark = format!(
        "round trips over the network: medians of {REQUESTS} requests each, in turns of {BLOCK}; direct is GET /v1/health \
         on a connection that stays open"
    );
    (in_both_places(|place, _| roundtrips_in(programs, place)), remark)
}

fn roundtrips_in(programs: &Programs, place: &str) -> Vec<Figure> {
    progress(format_args!("round trips over the network{place}"));
    let scratch = programs.scratch();
    let mut daemon = programs.serve(&scratch);
    let mut rest = Http::on(daemon.connect());
    let mut get = |path: &str| {
        let begun = now();
        assert_eq!(rest.request("GET", path, &[], "").status, 200);
        micros(begun.elapsed())
    };
    let (mut http, of_http) = Client::over_http(&daemon);
    let mut websocket = Client::over_websocket(&daemon);
    let session = websocket.settled_session();
    let path = format!("/v1/sessions/{}", text(&session));
    let [of_http, of_websocket] = [of_http, session].map(|session| json!({"sessionId": session}).to_string());
    let mut times: [Vec<f64>; 6] = Default::default();
    for round in 0..=REQUESTS / BLOCK {
        let [health, show, accepted, answered, over_websocket, noticed] = &mut times;
        health.extend((0..BLOCK).map(|_| get("/v1/health")));
        show.extend((0..BLOCK).map(|_| get(&path)));
        let both = (0..BLOCK).map(|_| http.timed(PING, &of_http)).map(<(f64, f64)>::from);
        let both: (Vec<f64>, Vec<f64>) = both.unzip();
        accepted.extend(both.0);
        answered.extend(both.1);
        over_websocket.extend((0..BLOCK).map(|_| websocket.timed(PING, &of_websocket)[1]));
        noticed.extend((0..BLOCK).map(|_| {
            let begun = now();
            http.wire.send(NOTHING);
            micros(begun.elapsed())
        }));
        if round == 0 {
            // To warm up.
            times.iter_mut().for_each(Vec::clear);
        }
    }
    drop((http, websocket));
    daemon.stop();
    let [health, show, accepted, http, websocket, noticed] = times.each_mut().map(|times| median(times));
    let of = |name: &str, acpd| Figure::new(format!("{name}{place}"), "us", [health, acpd]);
    vec![
        of("POST of a notification", noticed).at_most(TIMES),
        // On one processor the agent is asked meanwhile.
        of("POST of a request, to its 202", accepted),
        of("GET of a session", show),
        of("agent and back over HTTP", http),
        of("agent and back over WebSocket", websocket),
    ]
}

/// What an idle session and its viewers cost the daemon: one viewer of each on one WebSocket, as a client has that works
/// with many sessions, then another of each on an HTTP/1.1 connection of its own.
pub(super) fn memory(programs: &Programs) -> (Vec<Figure>, String) {
    progress(format_args!("memory: {SESSIONS} sessions, a turn and a viewer each"));
    let scratch = programs.scratch();
    let mut daemon = programs.serve(&scratch);
    let mut driver = Client::over_websocket(&daemon);
    let mut live = |_| {
        let session = driver.settled_session();
        driver.request("session/prompt", &prompt(&session, "hello there"));
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
    let of = |name, after: u64, before: u64| {
        let each = after.saturating_sub(before) as f64 / 1024.0 / SESSIONS as f64;
        Figure::new(name, "KiB", [0.0, each])
    };
    let figures = vec![
        of("an idle session and a viewer", with_sessions, base).below(KIB),
        of("a viewer with a connection", with_viewers, with_sessions),
    ];
    let base = base / 1024;
    (figures, format!("memory: anonymous pages of the daemon, {SESSIONS} sessions; before them {base} KiB"))
}
