//! One client that does anything at any time, and remembers what it asked.

use crate::dice::Dice;
use crate::history::Stored;
use crate::verdict::{Join, Seen, judge, judge_cut};
use acpd_e2e::{Asked, Client, Message, Scratch};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// Ids of the requests that are made here; those of the harness are lower.
const FIRST_ID: u64 = 10_000;

pub(crate) const DETACH: &str = "_sandboxagent/session/detach";

/// A request.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) id: u64,
    pub(crate) method: &'static str,
    /// None for what belongs to no session.
    pub(crate) session: Option<String>,
    asked: Asked,
}

/// A client and all its requests.
pub(crate) struct Driver {
    /// Begins all its prompts, and nobody else's.
    name: String,
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
        Self::uninitialized(client, scratch)
    }

    /// For a client that asks for nothing.
    pub(crate) fn uninitialized(client: Client, scratch: &Scratch) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("client-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Self { name, client, sent: Vec::new(), work: json!(scratch.work()) }
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
        let text = format!("{}\n{directive}", self.mark(self.next_id()));
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.send_with("session/prompt", Some(session), &params)
    }

    /// What makes the prompt of a request different from all others.
    pub(crate) fn mark(&self, id: u64) -> String {
        format!("{}-prompt-{id}", self.name)
    }

    /// Whether a `prompt` event is one of its own.
    fn said(&self, text: &str) -> bool {
        text.contains(&format!("\"{}-prompt-", self.name))
    }

    /// Checks what it saw of a session until it was gone.
    pub(crate) fn judge(&self, stored: &Stored) {
        judge(stored, &self.seen(&stored.id), |prompt| self.said(prompt));
    }

    /// As [`judge`](Self::judge), when it was cut off.
    pub(crate) fn judge_cut(&self, stored: &Stored) {
        judge_cut(stored, &self.seen(&stored.id), |prompt| self.said(prompt));
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

    /// Reads some messages, or as many as come before a request is answered.
    pub(crate) fn read_some(&mut self, count: usize, until: u64) {
        let is_it = |message: &Message| message.is_answer() && message.json["id"] == until;
        let mut read = 0;
        while read < count && self.client.next_message().is_some_and(|message| !is_it(&message)) {
            read += 1;
        }
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

    /// Checks that every request was answered once; at most once if not all had to be.
    pub(crate) fn answered(&self, all: bool) {
        let answers = self.answers();
        for sent in &self.sent {
            let count = answers.get(&sent.id).map_or(0, Vec::len);
            let told = || -> Vec<&str> {
                let places = answers.get(&sent.id).into_iter().flatten();
                places.map(|place| self.client.received()[*place].raw.as_str()).collect()
            };
            assert!(count == 1 || (count == 0 && !all), "{count} answers to {sent:?}: {:#?}", told());
        }
    }

    /// The sessions that it ever had to do with.
    pub(crate) fn known(&self) -> BTreeSet<String> {
        let asked = self.sent.iter().filter_map(|sent| sent.session.clone());
        let told = self.client.received().iter().filter_map(|message| message.session().map(str::to_owned));
        asked.chain(told).chain(self.sessions()).collect()
    }

    /// The sessions that it was told of.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let answers = self.client.received().iter().filter(|message| message.is_answer());
        answers.filter_map(|answer| answer.json["result"]["sessionId"].as_str().map(str::to_owned)).collect()
    }

    /// What it saw of a session.
    fn seen(&self, session: &str) -> Vec<Seen<'_>> {
        let sent: BTreeMap<u64, &Sent> = self.sent.iter().map(|sent| (sent.id, sent)).collect();
        let (mut seen, mut last_join) = (Vec::new(), 0);
        for message in self.client.received() {
            if !message.is_answer() {
                seen.extend((message.session() == Some(session)).then_some(Seen::Message(message)));
                continue;
            }
            let Some(result) = message.json.get("result") else { continue };
            let Some(sent) = message.json["id"].as_u64().and_then(|id| sent.get(&id)) else { continue };
            let is_new = sent.method == "session/new" && result["sessionId"] == session;
            if !is_new && sent.session.as_deref() != Some(session) {
                continue;
            }
            let reads_only = result["_meta"]["sandboxagent.dev"]["resumable"] == false;
            let joined = match sent.method {
                "session/new" => Join::New,
                "session/load" if reads_only => Join::Read,
                "session/load" => Join::Load,
                "session/resume" => Join::Resume,
                DETACH => {
                    // Where there was nothing to leave, a join that was asked for later may be answered before.
                    seen.extend((sent.id > last_join).then_some(Seen::Left));
                    continue;
                }
                _ => continue,
            };
            last_join = sent.id;
            seen.push(Seen::Joined(joined));
        }
        seen
    }
}
