//! Requests on one daemon: what was answered, whether it was done or refused, costs no memory.

use acpd_e2e::{
    Daemon, Events, Http, Scratch, WebSocket, acpd, anonymous_memory, initialize, noise, request,
};
use serde_json::{Value, json};

/// Rounds until pools and caches have their size. Twice as many follow.
const SETTLED: usize = 40;
/// MiB that are recorded first: more than the cache of recent events holds.
const RECORDED: u64 = 10;
/// Requests that are refused in a round, of each kind.
const REFUSED: usize = 3;
/// By how much memory may grow in a round, in bytes: what is kept of its 32 requests, with names of their own, would be more.
const EACH: u64 = 6 * 1024;

/// The token of the clients.
const AUTHORIZATION: (&str, &str) = ("Authorization", "Bearer a-token-of-the-test");

/// Settings by which glibc gives back what is free, so that what is kept is not hidden in what was free before; other allocators do not look.
pub(crate) const GIVEN_BACK: [(&str, &str); 4] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_MMAP_THRESHOLD_", "32768"),
    ("MALLOC_TRIM_THRESHOLD_", "0"),
    ("MALLOC_TOP_PAD_", "0"),
];

/// A client of REST that keeps its connection.
struct Caller {
    http: Http,
    work: Value,
}

impl Caller {
    fn ask(&mut self, method: &str, path: &str, more: &[(&str, &str)], body: &Value) -> (u16, Value) {
        let is_own = more.iter().all(|(name, _)| *name != AUTHORIZATION.0);
        let own = [("Content-Type", "application/json"), AUTHORIZATION];
        let headers: Vec<_> = own[..1 + usize::from(is_own)].iter().chain(more).copied().collect();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.http.request(method, path, &headers, &body);
        let json = if answer.body.is_empty() { Value::Null } else { answer.json() };
        (answer.status, json)
    }

    /// A session from its creation to its end, and half of the time to its deletion.
    fn session(&mut self, daemon: &Daemon, round: usize) {
        let (key, wanted) = (
            format!("key-{round}"),
            json!({"agent": "shared", "cwd": self.work, "title": format!("round {round}")}),
        );
        let keyed = [("Idempotency-Key", &*key)];
        let (status, created) = self.ask("POST", "/v1/sessions", &keyed, &wanted);
        assert_eq!(status, 201, "{created}");
        let path = format!("/v1/sessions/{}", created["sessionId"].as_str().expect("an id"));
        assert_eq!(self.ask("POST", "/v1/sessions", &keyed, &json!({"cwd": "/"})).0, 422);
        for query in ["/v1/sessions?limit=5", &path] {
            assert_eq!(self.ask("GET", query, &[], &Value::Null).0, 200);
        }
        assert_eq!(self.ask("POST", &format!("{path}/close"), &[], &json!({})).0, 204);
        let mut events = events(daemon, &format!("{path}/events"));
        while events.next_event().is_some() {}
        if round.is_multiple_of(2) {
            assert_eq!(self.ask("DELETE", &path, &[], &Value::Null).0, 204);
        }
    }

    /// Requests for what is not there, each under another name.
    fn refusals(&mut self, round: usize) {
        for number in 0..REFUSED {
            let name = format!("none-{round}-{number}");
            let (session, wrong) = (format!("/v1/sessions/{name}"), format!("Bearer {name}"));
            let (agent, place) =
                (json!({"cwd": self.work, "agent": name}), json!({"cwd": format!("/{name}")}));
            let (key, prompt) = ([("Idempotency-Key", &*name)], json!({"prompt": name}));
            let connection = [("Acp-Connection-Id", &*name), ("Accept", "text/event-stream")];
            for (expected, method, path, headers, body) in [
                (404, "GET", &*session, &[][..], &Value::Null),
                (404, "POST", &format!("{session}/prompt"), &key, &prompt),
                (404, "GET", &format!("/v1/{name}"), &[], &Value::Null),
                (404, "GET", "/acp", &connection, &Value::Null),
                (400, "POST", "/v1/sessions", &[], &agent),
                (400, "POST", "/v1/sessions", &key, &place),
                (200, "GET", &format!("/v1/sessions?q={name}"), &[], &Value::Null),
                (401, "GET", "/v1/sessions", &[("Authorization", &*wrong)], &Value::Null),
            ] {
                let (status, answer) = self.ask(method, path, headers, body);
                // Too many wrong tokens are put off.
                let is_put_off = (status, expected) == (429, 401);
                assert!(status == expected || is_put_off, "{method} {path}: {status} {answer}");
            }
        }
    }
}

/// A stream of events.
fn events(daemon: &Daemon, path: &str) -> Events {
    Http::on(daemon.connect()).events(path, &[AUTHORIZATION]).unwrap_or_else(|answer| panic!("{answer:?}"))
}

/// A connection, and a request on it.
fn asked(daemon: &Daemon, method: &str, params: &Value) -> (WebSocket, Value) {
    let path = "/acp?agent=shared";
    let mut socket = WebSocket::open(daemon.connect(), path, &[AUTHORIZATION]).expect("it is taken");
    socket.text(&initialize().to_string());
    socket.text(&request(2, method, params).to_string());
    let answer = socket.answer(2);
    (socket, answer)
}

/// A connection that is made, used and left.
fn connection(daemon: &Daemon, round: usize) {
    let load = json!({"sessionId": format!("none-{round}"), "cwd": "/", "mcpServers": []});
    let (_socket, refused) = asked(daemon, "session/load", &load);
    assert!(refused["error"].is_object(), "{refused}");
}

/// Fills the cache of recent events.
fn fill(daemon: &Daemon, scratch: &Scratch) {
    let (mut socket, created) =
        asked(daemon, "session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
    let session = &created["result"]["sessionId"];
    for seed in 1..=RECORDED {
        let prompt = json!([{"type": "text", "text": noise(seed)}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        socket.text(&request(2 + seed, "session/prompt", &params).to_string());
        let turn = socket.answer(2 + seed);
        assert_eq!(turn["result"]["stopReason"], "end_turn", "{turn}");
    }
}

// HT-12, SU-6: memory does not grow with the requests that were answered or refused, nor with sessions that were created, ended
// and deleted, nor with connections and streams that are over
#[test]
fn what_was_answered_costs_no_memory() {
    let hash: String =
        acpd_gateway::hash_token("a-token-of-the-test").iter().map(|byte| format!("{byte:02x}")).collect();
    let scratch = Scratch::new().example("shared", &[]).config("share_process = true");
    let scratch = scratch.config(&format!("[tokens.own]\nhash = \"sha256:{hash}\"\nscope = \"admin\""));
    let mut command = scratch.command(acpd());
    command.envs(GIVEN_BACK);
    let mut daemon = scratch.serve_by(command, "127.0.0.1:0");
    fill(&daemon, &scratch);
    let mut caller = Caller { http: Http::on(daemon.connect()), work: json!(scratch.work()) };
    let mut memory = Vec::new();
    for round in 1..=3 * SETTLED {
        caller.session(&daemon, round);
        caller.refusals(round);
        connection(&daemon, round);
        if round % SETTLED == 0 {
            memory.push(anonymous_memory(daemon.pid()));
        }
    }
    let (grown, bound) = (memory[2].saturating_sub(memory[0]), EACH * 2 * SETTLED as u64);
    eprintln!("{grown} bytes more behind {} rounds", 2 * SETTLED);
    assert!(grown <= bound, "{grown} bytes more, {bound} at most; by rounds: {memory:?}");
    drop(caller);
    daemon.stop();
}
