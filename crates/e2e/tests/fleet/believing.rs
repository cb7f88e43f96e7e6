//! What who can write to the fleet's engine cannot get: tokens, prompts, sessions, and a say in what a door answers.

use crate::acp::editor;
use crate::nodes::{Fleet, LONG_LEASE, Node, ROOT};
use acpd_e2e::{NatsServer, until};
use acpd_fleet::{Engine, EngineError, Expected, NodeId, NodeName, NodeRecord, SessionRecord};
use acpd_fleet_nats::{NatsSettings, Reached};
use acpd_record::SessionId;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The pause between two heartbeats of an intruder.
const PAUSE: Duration = Duration::from_millis(300);

/// Somebody with a credential of the engine, who is there until this is dropped.
struct Intruder {
    credential: Arc<Credential>,
    goes_on: Option<SyncSender<()>>,
    staying: Option<JoinHandle<()>>,
}

impl Intruder {
    /// Is a node of that address from now on.
    fn enter(server: &NatsServer, address: String) -> Self {
        let credential = Arc::new(Credential::new(server, address));
        credential.stay();
        let (goes_on, ends) = sync_channel::<()>(0);
        let stays = Arc::clone(&credential);
        let staying = std::thread::spawn(move || {
            while ends.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                stays.stay();
            }
        });
        Self { credential, goes_on: Some(goes_on), staying: Some(staying) }
    }
}

impl Drop for Intruder {
    fn drop(&mut self) {
        drop(self.goes_on.take());
        let stayed = self.staying.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || stayed.is_none_or(|stayed| stayed.is_ok()), "it was there");
    }
}

/// A connection to the engine that writes there as a node.
struct Credential {
    engine: Reached,
    runtime: Runtime,
    node: NodeRecord,
}

impl Credential {
    fn new(server: &NatsServer, address: String) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let settings = NatsSettings { lease: LONG_LEASE, ..NatsSettings::new(vec![server.url()]) };
        let engine = Reached::new(settings);
        let name = NodeName::try_from("evil".to_owned()).expect("a name");
        let mut node = NodeRecord::new(name, NodeId("evil-id".to_owned()), "1");
        (node.address, node.agents, node.room) = (Some(address), vec!["example".to_owned()], 100);
        // Its sessions exist for whom it likes.
        node.seers = vec![acpd_gateway::fingerprint(&acpd_gateway::hash_token(ROOT))];
        Self { engine, runtime, node }
    }

    /// Is there for another lease.
    fn stay(&self) {
        self.runtime.block_on(async {
            loop {
                let found = self.engine.node(&self.node.name).await.expect("it answers");
                let expected = found.map_or(Expected::Nothing, |(_, revision)| Expected::Unchanged(revision));
                match self.engine.put_node(&self.node, expected).await {
                    Ok(_) => return,
                    // Its lease was over meanwhile.
                    Err(EngineError::Conflict) => {}
                    Err(error) => panic!("it answers: {error}"),
                }
            }
        });
    }

    /// Says that a session is its own.
    fn claim(&self, session: &str) {
        let id = SessionId::parse(session).expect("an id");
        self.runtime.block_on(async {
            let found = self.engine.session(&id).await.expect("it answers");
            let (mut record, expected) = match found {
                Some((record, revision)) => (record, Expected::Unchanged(revision)),
                None => {
                    let info = json!({"sessionId": session, "agent": "example", "cwd": "/", "state": "idle"});
                    (SessionRecord::new(id, &self.node, info), Expected::Nothing)
                }
            };
            (record.node, record.node_id, record.epoch) =
                (self.node.name.clone(), self.node.id.clone(), None);
            self.engine.put_session(&record, expected).await.expect("nobody else writes it");
        });
    }
}

/// A port at which whoever calls is seen.
fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    listener.set_nonblocking(true).expect("it can be");
    let port = listener.local_addr().expect("it is bound").port();
    (listener, port)
}

fn nobody_called(listener: &TcpListener) -> bool {
    listener.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn knows_the_intruder(node: &Node) {
    until("the intruder is known", || (node.knows("evil")["reachable"] == true).then_some(()));
}

// contract 7.3: an address of another node is judged as an own one by all doors: no token and no prompt goes over a network
// as it is, however much like loopback its name looks
#[test]
fn no_token_goes_to_an_address_without_tls() {
    let fleet = Fleet::lasting_two();
    let a = &fleet.nodes[0];
    let (listener, port) = listener();
    for host in ["0.0.0.0", "127.1", "2130706433", "[::ffff:127.0.0.1]"] {
        let intruder = Intruder::enter(&fleet.server, format!("http://{host}:{port}"));
        knows_the_intruder(a);
        let session = "session-of-the-intruder";
        intruder.credential.claim(session);
        a.sees(session, "its session is listed", |_| true);
        let path = format!("/v1/sessions/{session}");
        for (method, rest, body) in [
            ("GET", "", Value::Null),
            ("GET", "/events", Value::Null),
            ("POST", "/prompt", json!({"prompt": "a secret"})),
            ("DELETE", "", Value::Null),
        ] {
            knows_the_intruder(a);
            let refused = a.ask(method, &format!("{path}{rest}"), &body);
            assert_eq!(
                (refused.status, refused.problem().as_str()),
                (503, "node_unreachable"),
                "{host}: {refused:?}"
            );
        }
        knows_the_intruder(a);
        let placed = a.ask("POST", "/v1/sessions", &a.wanted(&json!({"node": "evil", "prompt": "a secret"})));
        assert_eq!(placed.status, 503, "{host}: {placed:?}");
        let detail = placed.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains("https") && detail.contains("nothing was done"), "{detail}");
        let mut client = editor(a);
        knows_the_intruder(a);
        let load = json!({"sessionId": session, "cwd": a.scratch.work(), "mcpServers": []});
        let asked = client.request("session/load", &load);
        let refused = client.answer(&asked);
        assert!(refused.json["error"].is_object(), "{host}: {}", refused.raw);
        assert!(nobody_called(&listener), "{host}");
    }
}

// contract 7.3: a session that is live on a node is there, whatever the directory says: it is used by its own door and
// listed once, nothing of it goes to the false owner, and its entry is written again
#[test]
fn a_false_owner_takes_nothing() {
    let fleet = Fleet::lasting_two();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let session = a.create(&json!({}));
    b.sees(&session, "it is listed", |_| true);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it can be");
    let address = format!("http://{}", listener.local_addr().expect("it is bound"));
    let intruder = Intruder::enter(&fleet.server, address);
    knows_the_intruder(a);
    let path = format!("/v1/sessions/{session}");
    for round in 0..3 {
        intruder.credential.claim(&session);
        let prompted = a.ask("POST", &format!("{path}/prompt"), &json!({"prompt": "say words"}));
        assert_eq!(prompted.status, 202, "{round}: {prompted:?}");
        let shown = a.get(&path);
        assert_eq!((shown.status, &shown.json()["node"]), (200, &json!("a")), "{shown:?}");
        let listed = a.lists("").into_iter().filter(|listed| listed["sessionId"] == *session);
        assert_eq!(listed.map(|listed| listed["node"].clone()).collect::<Vec<_>>(), ["a"], "{round}");
        b.sees(&session, "its entry is written again", |listed| listed["node"] == "a");
    }
    a.sees(&session, "its turns are over", |listed| listed["state"] == "idle");
    assert_eq!(a.ask("POST", &format!("{path}/close"), &Value::Null).status, 204);
    // It was this node's, and is so when it has ended.
    knows_the_intruder(a);
    intruder.credential.claim(&session);
    assert_eq!(a.get(&path).json()["node"], "a");
    assert!(nobody_called(&listener));
}

// contract 7.3: of another node's answer only that goes back which this door would say itself: no cookie, no redirection, no page
#[test]
fn an_answer_says_nothing_for_this_door() {
    let fleet = Fleet::lasting_two();
    let a = &fleet.nodes[0];
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("it is bound"));
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it is called");
        let mut lines = BufReader::new(stream.try_clone().expect("a handle")).lines();
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let headers = [
            "Content-Type: text/html",
            "Set-Cookie: planted=1; Path=/",
            "Location: https://evil.example/",
            "Refresh: 0; url=https://evil.example/",
            "Clear-Site-Data: \"*\"",
            "Access-Control-Allow-Origin: *",
            "X-Accel-Redirect: /etc/passwd",
            "Acpd-Node: a",
            "Retry-After: 7",
            "Connection: close",
            "Content-Length: 6",
        ];
        write!(stream, "HTTP/1.1 201 Created\r\n{}\r\n\r\n<html>", headers.join("\r\n")).expect("it listens");
    });
    let intruder = Intruder::enter(&fleet.server, address);
    knows_the_intruder(a);
    intruder.credential.claim("session-of-the-intruder");
    a.sees("session-of-the-intruder", "its session is listed", |_| true);
    knows_the_intruder(a);
    let answer = a.get("/v1/sessions/session-of-the-intruder");
    answers.join().expect("it has answered");
    assert_eq!((answer.status, answer.body.as_slice()), (201, &b"<html>"[..]), "{answer:?}");
    for name in [
        "set-cookie",
        "location",
        "refresh",
        "clear-site-data",
        "access-control-allow-origin",
        "x-accel-redirect",
    ] {
        assert_eq!(answer.header(name), None, "{name}");
    }
    for (name, value) in [
        ("acpd-node", "evil"),
        ("retry-after", "7"),
        ("content-type", "application/octet-stream"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{answer:?}");
    }
}
