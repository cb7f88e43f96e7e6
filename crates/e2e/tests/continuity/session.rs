//! A session over REST, as these tests look at it.

use acpd_e2e::{Answer, Daemon, Http, Scratch};
use serde_json::{Value, json};
use std::str::FromStr;

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A scratch whose agents outlive their daemon for so long.
pub(crate) fn keeping(keep: &str) -> Scratch {
    Scratch::new().keep(keep)
}

/// One session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
}

pub(crate) fn post(daemon: &Daemon, path: &str, body: &Value) -> Answer {
    Http::on(daemon.connect()).request("POST", path, &[JSON], &body.to_string())
}

fn get(daemon: &Daemon, path: &str) -> Value {
    Http::on(daemon.connect()).request("GET", path, &[], "").json()
}

impl Session {
    /// A new session of an agent whose first prompt this is.
    pub(crate) fn begin(daemon: &Daemon, scratch: &Scratch, agent: &str, prompt: &str) -> Self {
        let body = json!({"agent": agent, "cwd": scratch.work(), "prompt": prompt});
        let answer = post(daemon, "/v1/sessions", &body);
        assert_eq!(answer.status, 201, "{}", answer.json());
        Self { id: answer.json()["sessionId"].as_str().expect("an id").to_owned() }
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/v1/sessions/{}{rest}", self.id)
    }

    pub(crate) fn prompt(&self, daemon: &Daemon, text: &str) -> Answer {
        post(daemon, &self.path("/prompt"), &json!({"prompt": text}))
    }

    pub(crate) fn close(&self, daemon: &Daemon) {
        assert_eq!(post(daemon, &self.path("/close"), &json!({})).status, 204);
    }

    pub(crate) fn answer(&self, daemon: &Daemon, question: &Value, option: &str) -> Answer {
        let outcome = json!({"outcome": "selected", "optionId": option});
        post(daemon, &self.path("/answer"), &json!({"question": question, "outcome": outcome}))
    }

    /// What is told of it.
    pub(crate) fn info(&self, daemon: &Daemon) -> Value {
        get(daemon, &self.path(""))
    }

    /// The process id of its agent.
    pub(crate) fn pid(&self, daemon: &Daemon) -> u64 {
        let info = self.info(daemon);
        info["metadata"]["agentPid"].as_u64().unwrap_or_else(|| panic!("no agent: {info}"))
    }

    /// All of its events.
    pub(crate) fn events(&self, daemon: &Daemon) -> Vec<Value> {
        let path = self.path("/events?limit=1000");
        let (mut all, mut next) = (Vec::new(), Some(path.clone()));
        while let Some(page) = next {
            let page = get(daemon, &page);
            all.extend_from_slice(page["events"].as_array().unwrap_or_else(|| panic!("events: {page}")));
            next = page["nextCursor"].as_str().map(|cursor| format!("{path}&after={cursor}"));
        }
        all
    }

    /// All of its events once so many turns have ended.
    pub(crate) fn events_until_turn(&self, daemon: &Daemon, turns: u64) -> Vec<Value> {
        let mut events = Http::on(daemon.connect()).events(&self.path("/events"), &[]).expect("a stream");
        events.until("the end of the turn", |event| {
            event.event.as_deref() == Some("turn_ended") && event.json()["turn"] == turns
        });
        self.events(daemon)
    }

    /// Waits for an event of a kind after `seq`.
    pub(crate) fn event_after(&self, daemon: &Daemon, seq: u64, kind: &str) -> Value {
        let path = self.path(&format!("/events?after={seq}"));
        let mut events = Http::on(daemon.connect()).events(&path, &[]).expect("a stream");
        events.until(kind, |event| event.event.as_deref() == Some(kind)).json()
    }

    /// Waits for an event of a kind.
    pub(crate) fn event(&self, daemon: &Daemon, kind: &str) -> Value {
        self.event_after(daemon, 0, kind)
    }

    /// Waits for so many updates.
    pub(crate) fn updates(&self, daemon: &Daemon, count: usize) {
        let mut events = Http::on(daemon.connect()).events(&self.path("/events"), &[]).expect("a stream");
        for _ in 0..count {
            events.until("an update", |event| event.event.as_deref() == Some("update"));
        }
    }
}

/// Those of a kind.
pub(crate) fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["kind"] == kind).collect()
}

/// What the agent said, in one piece.
pub(crate) fn said(events: &[Value]) -> String {
    let updates = of_kind(events, "update").into_iter();
    updates.filter_map(|event| event["message"]["params"]["update"]["content"]["text"].as_str()).collect()
}

/// The numbers are those that follow one another.
pub(crate) fn without_holes(events: &[Value]) {
    for (seq, event) in (1..).zip(events) {
        assert_eq!(event["seq"], seq, "{event}");
    }
}

/// The value of a series of the daemon's metrics.
fn value<T: FromStr>(daemon: &Daemon, series: &str) -> T {
    let answer = Http::on(daemon.connect()).request("GET", "/metrics", &[], "");
    let text = String::from_utf8_lossy(&answer.body);
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{series}: {text}"))
}

/// The value of a series that the daemon counts.
pub(crate) fn counted(daemon: &Daemon, series: &str) -> u64 {
    value(daemon, series)
}

/// The value of a series that the daemon sums up.
pub(crate) fn summed(daemon: &Daemon, series: &str) -> f64 {
    value(daemon, series)
}
