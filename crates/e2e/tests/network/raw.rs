//! A client over HTTP that does only what a test says.

use acpd_e2e::{Answer, Daemon, Events, Http, Scratch, initialize, request};
use serde_json::{Value, json};

pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");

pub(crate) fn prompt(id: u64, session: &str, text: &str) -> Value {
    request(id, "session/prompt", &json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
}

/// One request on a connection of its own.
pub(crate) fn once(daemon: &Daemon, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    Http::on(daemon.connect()).request(method, "/acp", headers, body)
}

/// An initialized connection.
pub(crate) struct Raw<'a> {
    pub(crate) daemon: &'a Daemon,
    pub(crate) id: String,
    posts: Http,
    next: u64,
}

impl<'a> Raw<'a> {
    pub(crate) fn new(daemon: &'a Daemon) -> Self {
        let mut posts = Http::on(daemon.connect());
        let answer = posts.request("POST", "/acp", &[JSON], &initialize().to_string());
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        let id = answer.header("acp-connection-id").expect("it is given").to_owned();
        Self { daemon, id, posts, next: 2 }
    }

    /// A connection with a session of its own, and the connection's stream, which has to stay open.
    pub(crate) fn with_session(daemon: &'a Daemon, scratch: &Scratch) -> (Self, Events, String) {
        let mut client = Self::new(daemon);
        let mut connection = client.open(None);
        let session = client.new_session(scratch, &mut connection);
        (client, connection, session)
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Posts a message, with a session in the header or without.
    pub(crate) fn try_post(&mut self, message: &Value, session: Option<&str>) -> Answer {
        let id = self.id.clone();
        let mut headers = vec![JSON, ("Acp-Connection-Id", &*id)];
        headers.extend(session.map(|session| ("Acp-Session-Id", session)));
        self.posts.request("POST", "/acp", &headers, &message.to_string())
    }

    pub(crate) fn post(&mut self, message: &Value) {
        let answer = self.try_post(message, None);
        assert_eq!((answer.status, &*answer.body), (202, &b""[..]), "{message}");
    }

    /// Opens a stream, the connection's or a session's, behind an event or not.
    pub(crate) fn try_open(&self, session: Option<&str>, last: Option<&str>) -> Result<Events, Answer> {
        let mut headers = vec![("Acp-Connection-Id", &*self.id)];
        headers.extend(session.map(|session| ("Acp-Session-Id", session)));
        headers.extend(last.map(|last| ("Last-Event-ID", last)));
        Http::on(self.daemon.connect()).events("/acp", &headers)
    }

    pub(crate) fn open(&self, session: Option<&str>) -> Events {
        self.try_open(session, None).expect("a stream of events")
    }

    /// Creates a session; the answer comes on the connection's stream.
    pub(crate) fn new_session(&mut self, scratch: &Scratch, events: &mut Events) -> String {
        let id = self.next_id();
        self.post(&request(id, "session/new", &json!({"cwd": scratch.work(), "mcpServers": []})));
        let answer = answer(events, id);
        answer["result"]["sessionId"].as_str().expect("a session has an id").to_owned()
    }

    pub(crate) fn load(&mut self, scratch: &Scratch, session: &str) -> u64 {
        let id = self.next_id();
        let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
        self.post(&request(id, "session/load", &params));
        id
    }

    pub(crate) fn delete(&self) -> u16 {
        once(self.daemon, "DELETE", &[("Acp-Connection-Id", &*self.id)], "").status
    }
}

/// Reads a stream up to the answer to a request.
pub(crate) fn answer(events: &mut Events, id: u64) -> Value {
    let is_it = |event: &acpd_e2e::Event| {
        let message = event.json();
        message["id"] == id && message.get("method").is_none()
    };
    events.until(&format!("the answer to {id}"), is_it).json()
}

/// The agent's text in a message.
pub(crate) fn text(message: &Value) -> Option<&str> {
    let update = &message["params"]["update"];
    (update["sessionUpdate"] == "agent_message_chunk").then(|| update["content"]["text"].as_str())?
}

/// Reads a stream up to the answer to a request: the agent's text before it.
pub(crate) fn text_before(events: &mut Events, id: u64) -> String {
    let mut said = String::new();
    loop {
        let message = events.next_data().expect("an answer comes").json();
        if message["id"] == id && message.get("method").is_none() {
            return said;
        }
        said.push_str(text(&message).unwrap_or_default());
    }
}
