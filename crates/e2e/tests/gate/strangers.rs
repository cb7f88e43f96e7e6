//! Without a token that is known: nothing, and nothing is done.

use crate::door::{JSON, ask, bearer, entry, plain};
use acpd_e2e::{Daemon, Exit, Http, PATIENCE, Scratch, WebSocket};
use serde_json::json;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

const ROUTES: [(&str, &str); 20] = [
    ("GET", "/v1/sessions"),
    ("GET", "/v1/sessions/x"),
    ("DELETE", "/v1/sessions/x"),
    ("PUT", "/v1/sessions/x"),
    ("GET", "/v1/sessions/x/events"),
    ("POST", "/v1/sessions/x/close"),
    ("POST", "/v1/sessions/x/terminate"),
    ("GET", "/v1/agents"),
    ("PATCH", "/v1/agents"),
    ("GET", "/v2/sessions"),
    ("GET", "/v2/sessions/x/events?after=y"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/"),
    ("GET", "/no/such/path"),
    ("POST", "/v1/health/x"),
    ("POST", "/acp"),
    ("GET", "/acp"),
    ("DELETE", "/acp"),
    ("PUT", "/acp"),
];

fn guarded() -> Scratch {
    Scratch::new().config(&entry("root", "scope = \"admin\""))
}

// SC-1, contract 1.7: every verb, every path, every form of a wrong token: one and the same 401, and nothing was done;
// a request without one is told to give one
#[test]
fn a_stranger_gets_401_and_nothing_else() {
    let scratch = guarded();
    let mut daemon = scratch.serve();
    let good = bearer("root");
    let basic = good.replace("Bearer", "Basic");
    let forms: Vec<Vec<(&str, &str)>> = vec![
        vec![],
        vec![("Authorization", "Bearer wrong")],
        vec![("Authorization", "bearer wrong")],
        vec![("Authorization", &basic)],
        vec![("Authorization", "Bearer ")],
        vec![("Authorization", "Bearer")],
        vec![("Authorization", "")],
        vec![("Authorization", "root-secret")],
        vec![("Authorization", "Bearer root-secre")],
        vec![("Authorization", "Bearer ROOT-SECRET")],
        vec![("Authorization", "Bearer root-secret, Bearer root-secret")],
        vec![("Authorization", &good), ("Authorization", &good)],
        vec![("Authorization", "Bearer wrong"), ("Authorization", &good)],
        vec![("Authorization", "Basic x"), ("Sec-WebSocket-Protocol", "acpd.bearer.root-secret")],
        vec![("Sec-WebSocket-Protocol", "acpd.bearer.wrong")],
        vec![("Cookie", "token=root-secret")],
        vec![("X-Forwarded-For", "127.0.0.1")],
    ];
    let mut http = Http::on(daemon.connect());
    let (mut none, mut wrong) = (None, None);
    for (method, path) in ROUTES {
        for form in &forms {
            let headers = [&[JSON], &form[..]].concat();
            let answer = http.request(method, path, &headers, "");
            assert_eq!(
                (answer.status, &*answer.problem()),
                (401, "unauthorized"),
                "{method} {path} {form:?}"
            );
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
            let gives_one =
                form.iter().any(|(name, _)| ["Authorization", "Sec-WebSocket-Protocol"].contains(name));
            let said = if gives_one { &mut wrong } else { &mut none };
            assert_eq!(said.get_or_insert_with(|| answer.body.clone()), &answer.body, "{method} {path}");
        }
    }
    let [none, wrong] =
        [none, wrong].map(|said| String::from_utf8(said.expect("both were tried")).expect("text"));
    assert!(
        none.contains("a token is required") && wrong.contains("no token that acpd knows"),
        "{none} {wrong}"
    );
    assert!(!wrong.contains("secret") && !wrong.contains("root"), "{wrong}");
    let query = plain(&daemon, "GET", "/v1/sessions?token=root-secret&access_token=root-secret", &[]);
    assert_eq!(query.status, 401);
    for form in &forms {
        let refused =
            WebSocket::open(daemon.connect(), "/acp?agent=example", form).expect_err("nobody knows it");
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")), "{form:?}");
    }
    // The scheme has no case (RFC 9110), the token has.
    assert_eq!(plain(&daemon, "GET", "/v1/sessions", &[("Authorization", "bearer root-secret")]).status, 200);
    assert_eq!(scratch.mark().running("example-agent").len(), 0, "no agent was started");
    assert_eq!(ask(&daemon, "root", "GET", "/v1/sessions").json(), json!({"sessions": []}));
    for path in ["/v1/health", "/v2/health", "/v1/ready", "/v2/ready"] {
        assert_eq!(plain(&daemon, "GET", path, &[("Authorization", "Bearer wrong")]).status, 200, "{path}");
    }
    daemon.stop();
}

// SC-1: a body that was announced is not waited for, nor is the client told to go on with it
#[test]
fn a_stranger_is_refused_before_the_body() {
    let scratch = guarded();
    let mut daemon = scratch.serve();
    for (path, expect) in [("/acp", ""), ("/acp", "Expect: 100-continue\r\n"), ("/v1/sessions/x/close", "")] {
        let mut http = Http::on(daemon.connect());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{expect}Content-Length: 67108864\r\n\r\n",
            daemon.address()
        );
        http.write(head.as_bytes());
        let answer = http.answer();
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{path}");
    }
    let mut http = Http::on(daemon.connect());
    let head =
        format!("POST /acp HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n", daemon.address());
    http.write(head.as_bytes());
    assert_eq!(http.answer().status, 401);
    daemon.stop();
}

/// A request on the Unix socket: the status line.
fn over_unix(daemon: &Daemon, headers: &str) -> String {
    let mut socket = UnixStream::connect(daemon.socket()).expect("it listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("the time is not zero");
    let request = format!("GET /v1/sessions HTTP/1.1\r\nHost: acpd\r\nConnection: close\r\n{headers}\r\n");
    socket.write_all(request.as_bytes()).expect("the daemon reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("it answers and closes");
    answer.lines().next().unwrap_or_default().to_owned()
}

// SC-1: the Unix socket is its owner's, who needs no token; a token that is wrong is wrong there too
#[test]
fn the_unix_socket_is_private_and_open_to_its_owner() {
    let scratch = guarded();
    let mut daemon = scratch.serve();
    let mode = std::fs::metadata(daemon.socket()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(over_unix(&daemon, ""), "HTTP/1.1 200 OK");
    assert_eq!(over_unix(&daemon, "Authorization: Bearer root-secret\r\n"), "HTTP/1.1 200 OK");
    for wrong in ["Bearer wrong", "Basic root-secret", "Bearer", ""] {
        let status = over_unix(&daemon, &format!("Authorization: {wrong}\r\n"));
        assert_eq!(status, "HTTP/1.1 401 Unauthorized", "{wrong}");
    }
    daemon.stop();
}

// SC-1, contract 1.7: without tokens, loopback only
#[test]
fn without_tokens_only_this_machine_may_call() {
    let open = Scratch::new();
    let mut daemon = open.serve();
    assert_eq!(plain(&daemon, "GET", "/v1/agents", &[]).status, 200, "all of it");
    daemon.stop();
    let (config, state) = (open.config_file(), open.state());
    let paths = [config, state].map(|path| path.to_string_lossy().into_owned());
    for listen in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "8.8.8.8:0"] {
        let args = ["serve", "--listen", listen, "--config", &paths[0], "--state-dir", &paths[1]];
        let (exit, stdout, stderr) = open.run(&args);
        assert_eq!((exit, &*stdout), (Exit::Code(2), ""), "{stderr}");
        assert!(stderr.contains("acpd token new") && stderr.contains("127.0.0.1"), "{stderr}");
    }
    let guarded = guarded();
    let mut daemon = guarded.serve_on("0.0.0.0:0");
    assert_eq!(plain(&daemon, "GET", "/v1/agents", &[]).status, 401);
    assert_eq!(ask(&daemon, "root", "GET", "/v1/agents").status, 200);
    daemon.stop();
}

// contract 6: refused tokens are counted from nothing on, and so is how long requests took; the text has an order
#[test]
fn strangers_are_counted() {
    let scratch = Scratch::new().config(&entry("root", "scope = \"admin\""));
    let mut daemon = scratch.serve();
    let text = || String::from_utf8(ask(&daemon, "root", "GET", "/metrics").body).expect("it is text");
    let value = |text: &str, series: &str| -> f64 {
        let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("{series}: {text}")).parse().expect("a number")
    };
    assert_eq!(value(&text(), "acpd_tokens_refused_total"), 0.0);
    for headers in [vec![], vec![("Authorization", "Bearer unknown")]] {
        assert_eq!(plain(&daemon, "GET", "/v1/sessions", &headers).status, 401);
    }
    let after = text();
    assert_eq!(value(&after, "acpd_tokens_refused_total"), 2.0);
    assert_eq!(value(&after, "acpd_http_requests_total{status=\"401\"}"), 2.0);
    // The two, and the one before; this one is not over yet.
    assert_eq!(value(&after, "acpd_http_request_seconds_count"), 3.0);
    let names = |text: &str| {
        let series = text.lines().map(|line| line.rsplit_once(' ').map_or(line, |(name, _)| name).to_owned());
        series.collect::<Vec<_>>()
    };
    assert_eq!(names(&text()), names(&after));
    daemon.stop();
}
