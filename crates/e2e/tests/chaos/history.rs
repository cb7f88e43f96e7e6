//! What the log of a state directory has, read with no acpd at work on it.

use acpd_e2e::Message;
use acpd_eventlog::{EventLog, ListQuery, Options};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The kinds of events that these tests know.
pub(crate) const CREATED: u16 = 1;
pub(crate) const RUN_STARTED: u16 = 2;
pub(crate) const PROMPT: u16 = 3;
pub(crate) const UPDATE: u16 = 4;
pub(crate) const NOTIFICATION: u16 = 5;
pub(crate) const TURN_ENDED: u16 = 6;
pub(crate) const ENDED: u16 = 9;

/// One event.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) kind: u16,
    pub(crate) text: String,
}

impl Entry {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("payloads are JSON")
    }
}

/// One session.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) id: String,
    pub(crate) has_owner: bool,
    pub(crate) ended: bool,
    pub(crate) info: Value,
    pub(crate) events: Vec<Entry>,
}

/// Every session of a state directory, by id.
pub(crate) fn stored(state: &Path) -> BTreeMap<String, Stored> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let log = EventLog::open(state, Options::default()).expect("the log opens");
        let mut all = BTreeMap::new();
        for row in log.list(ListQuery::default()).await.expect("the index can be read") {
            let mut cursor = log.cursor(&row.id, 0).await.expect("the session is there");
            let mut events = Vec::new();
            while let Some(block) = cursor.next().await.expect("its events can be read") {
                events.extend(block.events().map(|event| Entry {
                    seq: event.seq,
                    kind: event.kind,
                    text: String::from_utf8(event.payload.to_vec()).expect("payloads are JSON"),
                }));
            }
            let info = serde_json::from_slice(&row.info).expect("the description is JSON");
            let (id, has_owner, ended) = (row.id.clone(), row.owner.is_some(), row.ended);
            assert_eq!(row.last_seq, events.len() as u64, "{id}: the index counts its events");
            all.insert(row.id, Stored { id, has_owner, ended, info, events });
        }
        log.close().await;
        all
    })
}

impl Stored {
    /// The invariants of any log of which no run is live: sequence numbers without holes, runs with one end each
    /// and nothing after it but the terminate of a run that was lost (contract 8.2), turns one after the other and counted.
    pub(crate) fn is_in_order(&self) {
        let id = &self.id;
        let mut running = false;
        let (mut turn, mut in_turn) = (0, false);
        for (place, event) in self.events.iter().enumerate() {
            assert_eq!(event.seq, place as u64 + 1, "{id}: no hole");
            match event.kind {
                CREATED => assert_eq!(event.seq, 1, "{id}: created first, and once"),
                RUN_STARTED => {
                    assert!(!running, "{id}: event {} starts a run in a run", event.seq);
                    running = true;
                }
                ENDED if !running => {
                    let before = place.checked_sub(1).map(|place| self.events[place].json()["cause"].clone());
                    let is_final = before.is_some_and(|cause| cause == "daemon_lost")
                        && event.json()["cause"] == "client_terminate";
                    assert!(is_final, "{id}: event {} {:.200} ends it again", event.seq, event.text);
                }
                _ => assert!(running, "{id}: event {} {:.200} after the end", event.seq, event.text),
            }
            match event.kind {
                PROMPT => {
                    turn += 1;
                    assert!(!in_turn, "{id}: event {} begins a turn in a turn", event.seq);
                    assert_eq!(event.json()["turn"], turn, "{id}: event {}", event.seq);
                    in_turn = true;
                }
                TURN_ENDED => {
                    assert!(in_turn, "{id}: event {} ends a turn that is over", event.seq);
                    assert_eq!(event.json()["turn"], turn, "{id}: event {}", event.seq);
                    in_turn = false;
                }
                ENDED => (running, in_turn) = (false, false),
                _ => {}
            }
        }
        assert!(!running, "{id}: the last run has its end");
        assert!(self.ended && !self.has_owner, "{id}: the index says so too");
        let last = self.events.last().expect("a session begins with an event");
        let mut recorded = last.json();
        if let Some(stderr) = recorded.get_mut("stderr").and_then(Value::as_object_mut) {
            // Its text stands in the event only.
            stderr.retain(|member, _| !matches!(member.as_str(), "head" | "tail"));
        }
        assert_eq!(self.info["terminationInfo"], recorded, "{id}: the record is the last event");
    }

    pub(crate) fn prompts(&self) -> impl Iterator<Item = &Entry> {
        self.events.iter().filter(|event| event.kind == PROMPT)
    }

    pub(crate) fn ends(&self) -> usize {
        self.causes().len()
    }

    /// The cause of the end of each run.
    pub(crate) fn causes(&self) -> Vec<String> {
        let ends = self.events.iter().filter(|event| event.kind == ENDED);
        ends.map(|end| end.json()["cause"].as_str().expect("an end has a cause").to_owned()).collect()
    }

    /// What a client that watches sees, and at which event; what it `said` itself it does not see.
    pub(crate) fn live_view(&self, said: impl Fn(&str) -> bool) -> Vec<(u64, Shown)> {
        let mut view = Vec::new();
        for event in &self.events {
            match event.kind {
                UPDATE | NOTIFICATION => view.push((event.seq, Shown::Line(event.text.clone()))),
                ENDED => view.push((event.seq, Shown::Ended(event.json()))),
                PROMPT if !said(&event.text) => view.extend(said_by_user(event)),
                _ => {}
            }
        }
        view
    }

    /// What a replay shows, and at which event.
    pub(crate) fn replay_view(&self) -> Vec<(u64, Shown)> {
        let mut view = Vec::new();
        for event in &self.events {
            match event.kind {
                UPDATE => view.push((event.seq, Shown::Line(event.text.clone()))),
                PROMPT => view.extend(said_by_user(event)),
                _ => {}
            }
        }
        view
    }
}

/// A prompt as others see it.
fn said_by_user(event: &Entry) -> Vec<(u64, Shown)> {
    let prompt = event.json();
    let message = json!(format!("acpd-prompt-{}", prompt["turn"]));
    let chunk = |content: &Value| json!({"sessionUpdate": "user_message_chunk", "messageId": message, "content": content});
    let contents = prompt["prompt"].as_array().expect("content blocks");
    contents.iter().map(|content| (event.seq, Shown::Update(chunk(content)))).collect()
}

/// What a client may see of an event.
#[derive(Debug)]
pub(crate) enum Shown {
    /// This line, byte for byte.
    Line(String),
    /// A `session/update` of acpd's own.
    Update(Value),
    /// The end of a run, by its record.
    Ended(Value),
}

impl Shown {
    pub(crate) fn is(&self, message: &Message) -> bool {
        match self {
            Self::Line(line) => *line == message.raw,
            Self::Update(update) => message.json["params"]["update"] == *update,
            Self::Ended(record) => {
                let data = &message.json["params"]["data"];
                let same = |told: &str, recorded: &str| data.get(told) == record.get(recorded);
                message.method() == Some("_sandboxagent/session/ended")
                    && same("reason", "reason")
                    && same("terminated_by", "terminatedBy")
                    && same("exit_code", "exitCode")
                    && same("signal", "signal")
            }
        }
    }
}
