//! Under which names acpd may be called, and from which pages.

use crate::door::{ask, bearer, entry, plain};
use acpd_e2e::{Daemon, Http, PATIENCE, Scratch, WebSocket};
use acpd_supervisor::TaskScope;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};

const VERBS: [(&str, &str); 7] = [
    ("GET", "/v1/sessions"),
    ("POST", "/acp"),
    ("DELETE", "/acp"),
    ("OPTIONS", "/acp"),
    ("GET", "/v1/health"),
    ("PUT", "/no/such/path"),
    ("DELETE", "/v1/sessions/x"),
];

fn scratch() -> Scratch {
    let server = "[server]\nallowed_hosts = [\"acpd.test\"]\nallowed_origins = [\"https://page.test\"]\n";
    Scratch::new().config(&format!("{server}{}", entry("root", "scope = \"admin\"")))
}

fn with(daemon: &Daemon, method: &str, path: &str, header: (&str, &str)) -> (u16, String) {
    let token = bearer("root");
    let answer = plain(daemon, method, path, &[("Authorization", &token), header]);
    let problem = if answer.status == 403 { answer.problem() } else { String::new() };
    (answer.status, problem)
}

// SC-2: a name that somebody else could point here is refused on every verb, token or not
#[test]
fn foreign_hosts_are_refused() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let port = daemon.address().port();
    for host in [
        "evil.test",
        &format!("evil.test:{port}"),
        "127.0.0.1.evil.test",
        &format!("127.0.0.1:{port}.evil.test"),
        &format!("evil.test@127.0.0.1:{port}"),
        &format!("127.0.0.1:{port},evil.test"),
        "localhost:name",
        "localhost:99999",
        "localhost.evil.test",
        "8.8.8.8",
        "",
    ] {
        for (method, path) in VERBS {
            let refused = with(&daemon, method, path, ("Host", host));
            assert_eq!(refused, (403, "foreign_host".to_owned()), "{method} {path} {host:?}");
        }
        let refused =
            WebSocket::open(daemon.connect(), "/acp", &[("Authorization", &bearer("root")), ("Host", host)]);
        assert_eq!(refused.expect_err("it is foreign").problem(), "foreign_host");
    }
    // A tunnel or a proxy has a port of its own.
    let elsewhere = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{}", port ^ 1));
    let own = format!("localhost:{port}");
    let names = ["acpd.test", "ACPD.test:99", "localhost", &own, "127.0.0.1", "[::1]"];
    for host in names.into_iter().chain(elsewhere.iter().map(String::as_str)) {
        assert_eq!(with(&daemon, "GET", "/v1/sessions", ("Host", host)).0, 200, "{host}");
    }
    // None at all, two, and one in the address.
    let own = format!("Host: {}\r\n", daemon.address());
    for (target, hosts, status) in [
        ("/v1/health", String::new(), 403),
        ("/v1/health", format!("{own}Host: evil.test\r\n"), 403),
        ("/v1/health", format!("Host: evil.test\r\n{own}"), 403),
        ("http://evil.test/v1/health", own.clone(), 403),
        (&*format!("{}/v1/health", daemon.url()), "Host: evil.test\r\n".to_owned(), 403),
        (&*format!("{}/v1/health", daemon.url()), own.clone(), 200),
    ] {
        let mut http = Http::on(daemon.connect());
        http.write(format!("GET {target} HTTP/1.1\r\n{hosts}\r\n").as_bytes());
        assert_eq!(http.answer().status, status, "{target} {hosts:?}");
    }
    daemon.stop();
}

// SC-2: pages of other origins are refused on every verb, also before a preflight is answered
#[test]
fn foreign_origins_are_refused() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let own = daemon.url();
    for origin in [
        "https://evil.test",
        "null",
        "",
        "http://page.test",
        "https://page.test:444",
        "https://page.test.evil.test",
        "https://page.test/",
        &own.replace("http:", "https:"),
        "http://127.0.0.1:1",
    ] {
        for (method, path) in VERBS {
            let refused = with(&daemon, method, path, ("Origin", origin));
            assert_eq!(refused, (403, "foreign_origin".to_owned()), "{method} {path} {origin}");
        }
        let headers = [("Authorization", &*bearer("root")), ("Origin", origin)];
        let refused = WebSocket::open(daemon.connect(), "/acp", &headers).expect_err("it is foreign");
        assert_eq!((refused.status, &*refused.problem()), (403, "foreign_origin"), "{origin}");
        let preflight = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "x"),
        ];
        let refused = plain(&daemon, "OPTIONS", "/acp", &preflight);
        assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None), "{origin}");
    }
    assert_eq!(with(&daemon, "GET", "/v1/sessions", ("Origin", &own)).0, 200, "its own pages");
    let headers = [("Authorization", &*bearer("root")), ("Origin", "https://page.test")];
    assert!(WebSocket::open(daemon.connect(), "/acp", &headers).is_ok());
    // Of several, none may be foreign.
    for origins in [[&*own, "https://evil.test"], ["https://evil.test", &*own]] {
        let headers = origins.map(|origin| ("Origin", origin));
        assert_eq!(plain(&daemon, "GET", "/v1/health", &headers).status, 403, "{origins:?}");
    }
    daemon.stop();
}

// SC-2: a page that may call is answered, and told so, before it has a token
#[test]
fn a_page_that_may_call_is_answered() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let origin = ("Origin", "https://page.test");
    for method in ["GET", "POST", "DELETE"] {
        let asked = [
            origin,
            ("Access-Control-Request-Method", method),
            ("Access-Control-Request-Headers", "authorization,content-type,acp-connection-id,last-event-id"),
        ];
        for path in ["/acp", "/v1/sessions/x", "/v2/agents"] {
            let answer = plain(&daemon, "OPTIONS", path, &asked);
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("access-control-allow-origin"), Some(origin.1));
            let allowed = answer.header("access-control-allow-methods").expect("they are told");
            assert!(allowed.contains(method), "{allowed}");
            let allowed = answer.header("access-control-allow-headers").expect("they are told");
            for header in asked[2].1.split(',') {
                assert!(allowed.contains(header), "{header}: {allowed}");
            }
            assert!(answer.body.is_empty() && answer.header("access-control-allow-credentials").is_none());
        }
    }
    let answer = plain(&daemon, "GET", "/v1/sessions", &[origin, ("Authorization", &bearer("root"))]);
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some(origin.1)));
    let exposed = answer.header("access-control-expose-headers").expect("they are told");
    assert!(exposed.contains("acp-connection-id") && exposed.contains("retry-after"), "{exposed}");
    // It may read why it is refused.
    let refused = plain(&daemon, "GET", "/v1/sessions", &[origin]);
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, Some(origin.1)));
    assert_eq!(ask(&daemon, "root", "GET", "/v1/sessions").header("access-control-allow-origin"), None);
    daemon.stop();
}

/// The beginning of an address, headers, and the status they get.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);

// SC-2: the same over HTTP/2, where the name is in `:authority`
#[test]
fn http2_has_the_same_door() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let own = daemon.url();
    let talk = async {
        let scope = TaskScope::default();
        let stream = tokio::net::TcpStream::connect(daemon.address()).await.expect("the daemon accepts");
        let (mut http, connection) =
            handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("it speaks HTTP/2");
        scope.spawn("http/2", connection);
        let cases: [Case<'_>; 8] = [
            (&own, &[], 200),
            ("http://acpd.test", &[], 200),
            ("http://evil.test", &[], 403),
            ("http://evil.test", &[("host", "acpd.test")], 403),
            ("http://acpd.test", &[("host", "evil.test")], 403),
            (&own, &[("origin", "https://evil.test")], 403),
            (&own, &[("origin", "null")], 403),
            (&own, &[("origin", "https://page.test")], 200),
        ];
        for (base, headers, status) in cases {
            for method in ["GET", "POST", "DELETE", "OPTIONS"] {
                let mut request = hyper::Request::builder().method(method).uri(format!("{base}/v1/sessions"));
                for (name, value) in [("authorization", &*bearer("root"))].iter().chain(headers) {
                    request = request.header(*name, *value);
                }
                let request = request.body(Empty::<Bytes>::new()).expect("a request");
                let answer = http.send_request(request).await.expect("an answer").status().as_u16();
                let expected = match (status, method) {
                    // A session without a body, and no such method.
                    (200, "POST") => 400,
                    (200, "DELETE") => 405,
                    (status, _) => status,
                };
                assert_eq!(answer, expected, "{method} {base} {headers:?}");
            }
        }
        let stranger =
            hyper::Request::get(format!("{own}/v1/sessions")).body(Empty::new()).expect("a request");
        assert_eq!(http.send_request(stranger).await.expect("an answer").status(), 401);
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, talk).await }).expect("in time");
    drop(runtime);
    daemon.stop();
}
