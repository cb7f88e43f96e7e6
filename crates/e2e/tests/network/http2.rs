//! The same over HTTP/2, all streams on one socket.

use crate::raw::prompt;
use acpd_e2e::{Daemon, PATIENCE, Scratch, initialize, request};
use acpd_supervisor::TaskScope;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

struct Client {
    http: SendRequest<Full<Bytes>>,
    url: String,
    id: Option<String>,
}

impl Client {
    async fn connect(daemon: &Daemon, scope: &TaskScope) -> Self {
        let stream = tokio::net::TcpStream::connect(daemon.address()).await.expect("the daemon accepts");
        let (http, connection) =
            handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("it speaks HTTP/2");
        scope.spawn("http/2", connection);
        Self { http, url: format!("{}/acp", daemon.url()), id: None }
    }

    async fn send(&mut self, method: &str, session: Option<&str>, body: String) -> Response<Incoming> {
        let mut request = Request::builder().method(method).uri(&self.url);
        request = request.header("content-type", "application/json").header("accept", "*/*");
        if let Some(id) = &self.id {
            request = request.header("acp-connection-id", id);
        }
        if let Some(session) = session {
            request = request.header("acp-session-id", session);
        }
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        self.http.send_request(request).await.expect("an answer")
    }

    async fn post(&mut self, message: &Value) {
        assert_eq!(self.send("POST", None, message.to_string()).await.status(), 202);
    }
}

/// Reads a stream up to the answer to a request: all text before it, and the answer.
async fn answer(stream: &mut Response<Incoming>, id: u64) -> (String, Value) {
    let (mut said, mut text) = (String::new(), String::new());
    loop {
        let frame = stream.frame().await.expect("it goes on").expect("in order");
        text.push_str(std::str::from_utf8(&frame.into_data().expect("data")).expect("whole lines"));
        while let Some(end) = text.find("\n\n") {
            let event: String = text.drain(..end + 2).collect();
            let Some(data) = event.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
            let message: Value = serde_json::from_str(data).expect("JSON");
            if message["id"] == id {
                return (said, message);
            }
            said.push_str(crate::raw::text(&message).unwrap_or_default());
        }
    }
}

// HT-9: over HTTP/2 as over HTTP/1.1
#[test]
fn http2_has_it_all_on_one_socket() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let talk = async {
        let scope = TaskScope::default();
        let mut client = Client::connect(&daemon, &scope).await;
        let answered = client.send("POST", None, initialize().to_string()).await;
        assert_eq!(answered.status(), 200);
        let id = answered.headers()["acp-connection-id"].to_str().expect("ASCII").to_owned();
        client.id = Some(id);
        let mut connection = client.send("GET", None, String::new()).await;
        client.post(&request(2, "session/new", &json!({"cwd": scratch.work(), "mcpServers": []}))).await;
        let (_, created) = answer(&mut connection, 2).await;
        let session = created["result"]["sessionId"].as_str().expect("an id").to_owned();
        let mut events = client.send("GET", Some(&session), String::new()).await;
        client.post(&prompt(3, &session, "stream 2000 500")).await;
        let (said, ended) = answer(&mut events, 3).await;
        assert_eq!((said.len(), &ended["result"]["stopReason"]), (1_000_000, &json!("end_turn")));
        assert_eq!(client.send("DELETE", None, String::new()).await.status(), 202);
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, talk).await }).expect("in time");
    drop(runtime);
    daemon.stop();
}
