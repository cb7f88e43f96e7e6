//! One client that does anything at any time, and remembers what it asked.

use crate::dice::Dice;
use crate::verdict::{Join, Seen};
use acpd_e2e::{Asked, Client, Message, Scratch};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Ids of the requests that are made here; those of the harness are lower.
const FIRST_ID: u64 = 10_000;

/// A request.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) id: u64,
    pub(crate) method: &'static str,
    /// None for what belongs to no session.
    pub(crate) session: Option<String>,
    asked: Asked,
}

impl Sent {
    /// What makes the prompt of this request different from all others.
    pub(crate) fn mark(&self) -> String {
        format!("mark-{}", self.id)
    }
}

/// A client and all its requests.
pub(crate) struct Driver {
    pub(crate) client: Client,
    pub(crate) sent: Vec<Sent>,
    work: Value,
}

impl Drop for Driver {
    /// A test that failed wants to know what was not answered.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let answers = self.answers();
            let open = self.sent.iter().filter(|sent| !answers.contains_key(&sent.id));
            eprintln!("not answered: {:#?}", open.collect::<Vec<_>>());
        }
    }
}

impl Driver {
    pub(crate) fn new(mut client: Client, scratch: &Scratch) -> Self {
        client.initialize();
        Self { client, sent: Vec::new(), work: json!(scratch.work()) }
    }

    /// Sends a request without waiting.
    pub(crate) fn send(&mut self, method: &'static str, session: Option<&str>) -> &Sent {
        let mut params = json!({});
        if let Some(session) = session {
            params["sessionId"] = json!(session);
        }
        if ["session/new", "session/load", "session/resume"].contains(&method) {
            params["cwd"] = self.work.clone();
            params["mcpServers"] = json!([]);
        }
        self.send_with(method, session, &params)
    }

    /// Prompts without waiting. The first line tells this prompt from others.
    pub(crate) fn prompt(&mut self, session: &str, directive: &str) -> &Sent {
        let text = format!("mark-{}\n{directive}", self.next_id());
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.send_with("session/prompt", Some(session), &params)
    }

    fn next_id(&self) -> u64 {
        FIRST_ID + self.sent.len() as u64
    }

    fn send_with(&mut self, method: &'static str, session: Option<&str>, params: &Value) -> &Sent {
        let id = self.next_id();
        let asked = self.client.request_as(&id.to_string(), method, params);
        self.sent.push(Sent { id, method, session: session.map(str::to_owned), asked });
        self.sent.last().expect("it was just put there")
    }

    /// Waits for the answer to the request that was sent as number `place`.
    pub(crate) fn wait(&mut self, place: usize) -> Message {
        self.client.answer(&self.sent[place].asked)
    }

    /// Waits until everything that ends by itself was answered, in the order in which it was asked.
    pub(crate) fn wait_for_all_but_prompts(&mut self) {
        for place in 0..self.sent.len() {
            if self.sent[place].method != "session/prompt" {
                self.wait(place);
            }
        }
    }

    /// Waits for one of the requests that end by themselves.
    pub(crate) fn wait_for_any(&mut self, dice: &mut Dice) {
        let answers = self.answers();
        let is_open = |sent: &Sent| sent.method != "session/prompt" && !answers.contains_key(&sent.id);
        let open: Vec<usize> = (0..self.sent.len()).filter(|place| is_open(&self.sent[*place])).collect();
        match open.is_empty() {
            true => drop(self.send("session/list", None)),
            false => drop(self.wait(dice.pick(&open))),
        }
    }

    /// Waits until the client is attached to a session or not, whatever is under way.
    pub(crate) fn wait_for_joins(&mut self, session: &str) {
        let joins = ["session/load", "session/resume"];
        for place in 0..self.sent.len() {
            let sent = &self.sent[place];
            if joins.contains(&sent.method) && sent.session.as_deref() == Some(session) {
                self.wait(place);
            }
        }
    }

    /// The answers so far, with their places in what was received.
    pub(crate) fn answers(&self) -> BTreeMap<u64, Vec<usize>> {
        let mut answers: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (place, message) in self.client.received().iter().enumerate() {
            if let (true, Some(id)) = (message.is_answer(), message.json["id"].as_u64()) {
                answers.entry(id).or_default().push(place);
            }
        }
        answers
    }

    /// The sessions that it was told of.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let answers = self.client.received().iter().filter(|message| message.is_answer());
        answers.filter_map(|answer| answer.json["result"]["sessionId"].as_str().map(str::to_owned)).collect()
    }

    /// What it saw of a session.
    pub(crate) fn seen(&self, session: &str) -> Vec<Seen<'_>> {
        let sent: BTreeMap<u64, &Sent> = self.sent.iter().map(|sent| (sent.id, sent)).collect();
        let of = |message: &Message| {
            let result = message.json.get("result")?;
            let sent = sent.get(&message.json["id"].as_u64()?)?;
            let is_it = sent.session.as_deref() == Some(session);
            match sent.method {
                "session/new" => (result["sessionId"] == session).then_some(Seen::Joined(Join::New)),
                "session/load" => is_it.then_some(Seen::Joined(Join::Load)),
                "session/resume" => is_it.then_some(Seen::Joined(Join::Resume)),
                "_sandboxagent/session/detach" => is_it.then_some(Seen::Left),
                _ => None,
            }
        };
        let seen = |message| match Message::is_answer(message) {
            true => of(message),
            false => (message.session() == Some(session)).then_some(Seen::Message(message)),
        };
        self.client.received().iter().filter_map(seen).collect()
    }
}
