//! Requests that begin slowly, end with half a socket, or say what is not to be sent; on real sockets.

use crate::raw::{JSON, Raw, once};
use acpd_e2e::{Daemon, Http, PATIENCE, Scratch, Stopwatch, initialize, until};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Says something, then a byte a second if `drips`, to the end of the connection: the time that `watch` has then.
fn time_of_end(watch: Stopwatch, mut socket: TcpStream, said: &[u8], drips: bool) -> Duration {
    socket.write_all(said).expect("the daemon reads");
    socket.set_read_timeout(Some(Duration::from_secs(1))).expect("the time is not zero");
    loop {
        match socket.read(&mut [0; 512]) {
            Ok(0) => return watch.passed(),
            Ok(_) => panic!("nothing is to be said to {:?}", String::from_utf8_lossy(said)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_broken) => return watch.passed(),
        }
        assert!(watch.passed() < 2 * PATIENCE, "it is not given up: {:?}", String::from_utf8_lossy(said));
        // The daemon may have given it up in this moment.
        if drips && socket.write_all(b"x").is_err() {
            return watch.passed();
        }
    }
}

// HT-12: the whole head of a request has 10 s from its first byte, the first one from the beginning, however slowly it
// comes; so has the preface of HTTP/2; a connection without a request under way is left alone
#[test]
fn half_a_head_holds_no_socket() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut idle = Http::on(daemon.connect());
    assert_eq!(idle.request("GET", "/v1/health", &[], "").status, 200);
    let mut later = Http::on(daemon.connect());
    assert_eq!(later.request("GET", "/v1/health", &[], "").status, 200);
    let half: [(&[u8], bool); 6] = [
        (b"", false),
        (b"GET /v1/sessions HTTP/1.1\r\nHo", false),
        (b"GET /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", true),
        (b"G", true),
        (b"PRI * HTTP/2.0\r\n\r\nSM", false),
        (b"PRI * HTT", false),
    ];
    let mut waiting: Vec<_> = half
        .map(|(said, drips)| {
            let (watch, socket) = (Stopwatch::start(), daemon.connect());
            std::thread::spawn(move || time_of_end(watch, socket, said, drips))
        })
        .into();
    let later = later.into_stream();
    let watch = Stopwatch::start();
    waiting.push(std::thread::spawn(move || time_of_end(watch, later, b"GET /v1/health HT", true)));
    for (number, waited) in waiting.into_iter().enumerate() {
        let took = waited.join().expect("it ends");
        assert!((Duration::from_secs(9)..PATIENCE).contains(&took), "{number}: {took:?}");
    }
    assert_eq!(idle.request("GET", "/v1/health", &[], "").status, 200, "nothing of it was due");
    daemon.stop();
}

/// Sends a request, closes that half, and reads to the end.
fn half_closed(daemon: &Daemon, request: &str) -> String {
    let mut socket = daemon.connect();
    socket.write_all(request.as_bytes()).expect("the daemon reads");
    socket.shutdown(Shutdown::Write).expect("it is connected");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("it ends in order");
    answer
}

// HT-2, HT-12: a client that closes its half of the connection behind a request gets its answer; one that breaks off in
// the middle of it gets none
#[test]
fn a_half_closed_socket_is_answered() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let host = format!("Host: {}\r\n", daemon.address());
    for _ in 0..20 {
        let answer = half_closed(&daemon, &format!("GET /v1/sessions HTTP/1.1\r\n{host}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("{\"sessions\":[]}"), "{answer}");
    }
    // A body that is whole is no obstacle, whichever comes first, the end or the reader of the body.
    let body = initialize().to_string();
    let length = body.len();
    let post = format!(
        "POST /acp?agent=nobody HTTP/1.1\r\n{host}{}: {}\r\nContent-Length: {length}\r\n\r\n",
        JSON.0, JSON.1
    );
    for _ in 0..50 {
        let answer = half_closed(&daemon, &format!("{post}{body}"));
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("-32602"), "{answer}");
    }
    // Two at once.
    let two = format!("GET /v1/health HTTP/1.1\r\n{host}\r\n").repeat(2);
    assert_eq!(half_closed(&daemon, &two).matches("HTTP/1.1 200 OK").count(), 2);
    for broken in [format!("{post}{}", &body[1..]), format!("GET /v1/health HTTP/1.1\r\n{host}")] {
        let answer = half_closed(&daemon, &broken);
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    daemon.stop();
}

// HT-12: who reads events and closes has left, and is not counted any more
#[test]
fn a_stream_ends_with_its_reader() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (_client, _connection, session) = Raw::with_session(&daemon, &scratch);
    let path = format!("/v1/sessions/{session}/events");
    let mut events = Http::on(daemon.connect()).events(&path, &[]).expect("a stream");
    events.until("its first event", |event| event.id.is_some());
    let open = r#"acpd_viewers{transport="sse"}"#;
    acpd_e2e::until_counted(daemon.address(), open, 1);
    events.socket().shutdown(Shutdown::Write).expect("it is connected");
    acpd_e2e::until_counted(daemon.address(), open, 0);
    daemon.stop();
}

// HT-2: a weight of 0 refuses a kind, and the range that names it most exactly counts, at both kinds of streams
#[test]
fn what_a_client_refuses_is_not_sent() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (client, _connection, session) = Raw::with_session(&daemon, &scratch);
    let path = format!("/v1/sessions/{session}/events");
    for (accept, acp, rest) in [
        ("text/event-stream", 200, "text/event-stream"),
        ("text/event-stream;q=0.3, application/json;q=0.2", 200, "text/event-stream"),
        ("application/json, text/event-stream", 200, "text/event-stream"),
        ("*/*", 200, "application/json"),
        ("text/event-stream;q=0", 406, "application/json"),
        ("text/event-stream; q=0.0, */*", 406, "application/json"),
        ("*/*;q=1, text/*;q=0", 406, "application/json"),
        ("application/json", 406, "application/json"),
    ] {
        let known = [("Acp-Connection-Id", &*client.id), ("Accept", accept)];
        let mut http = Http::on(daemon.connect());
        http.send("GET", "/acp", &known, "");
        assert_eq!(http.head().status, acp, "{accept}");
        let mut http = Http::on(daemon.connect());
        http.send("GET", &path, &[("Accept", accept)], "");
        let head = http.head();
        assert_eq!((head.status, head.header("content-type")), (200, Some(rest)), "{accept}");
    }
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "session/list", "params": {}}).to_string();
    for (accept, status) in
        [("application/json;q=0, text/event-stream;q=0", 406), ("*/*;q=0", 406), ("*/*;q=0.1", 202)]
    {
        let headers = [JSON, ("Acp-Connection-Id", &*client.id), ("Accept", accept)];
        assert_eq!(once(&daemon, "POST", &headers, &list).status, status, "{accept}");
    }
    daemon.stop();
}

// HT-10, UP-2: a client is not late because the daemon itself was stopped
#[test]
fn time_in_which_the_daemon_stood_still_does_not_count() {
    let scratch = Scratch::new().timeout("connection_idle", "10s");
    let mut daemon = scratch.serve();
    let client = Raw::new(&daemon);
    let is_known = || {
        let headers = [
            ("Acp-Connection-Id", &*client.id),
            ("Accept", "text/event-stream"),
            ("Last-Event-ID", "garbage"),
        ];
        // Known, and not heard by it: a cursor that cannot be read is refused first.
        once(&daemon, "GET", &headers, "").status == 400
    };
    daemon.suspend();
    // The system takes the request, and nothing else happens.
    let mut unheard = Http::on(daemon.connect());
    unheard.send("GET", "/v1/health", &[], "");
    let mut unheard = unheard.into_stream();
    unheard.set_read_timeout(Some(Duration::from_secs(12))).expect("the time is not zero");
    let late = unheard.read(&mut [0; 1]).expect_err("the daemon stands still");
    assert!(matches!(late.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{late}");
    daemon.signal(rustix::process::Signal::CONT);
    assert!(is_known(), "its time begins anew");
    until("it expires all the same", || (!is_known()).then_some(()));
    daemon.stop();
}
