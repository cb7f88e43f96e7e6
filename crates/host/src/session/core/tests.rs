//! The session's core, stepped without a runtime: inputs in, effects and events out.

mod asking;
mod ending;
mod law;
mod repeating;
mod serving;
mod stalling;
mod turning;

use super::*;
use crate::agent::{AgentAnswer, Ticket};
use crate::session::effects::{Act, Stop};
use acpd_record::{EventKind, RunStarted, TurnNumber};
use acpd_wire::{Message, OwnedId};
use serde_json::value::RawValue;

/// A session, its log, and what it did.
struct Stage {
    core: SessionCore,
    viewers: Viewers,
    now: Now,
    /// Kind and payload of each event.
    log: Vec<(u16, String)>,
}

fn limits() -> Limits {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    Limits {
        cancel: seconds(10),
        permission: seconds(60),
        idle: None,
        stall: None,
        settle_turn: Duration::from_millis(1500),
        settle: Duration::from_millis(300),
    }
}

fn facts() -> RunFacts {
    RunFacts {
        id: SessionId::parse("ours").expect("an id"),
        native: NativeSessionId::of_text("native"),
        permission_mode: PermissionMode::Default,
        prompt: PromptCapabilities::default(),
        is_shared: false,
        is_kept: false,
        after_turn: None,
        offered: Offered::default(),
        forwards_files: true,
        limits: limits(),
    }
}

fn client(name: &str) -> ClientRef {
    ClientRef { name: name.into(), connection: name.into() }
}

/// A log whose run has just begun.
fn begun() -> Vec<(u16, String)> {
    let created = r#"{"agent":"a","cwd":"/","by":"c"}"#.to_owned();
    let started = serde_json::to_string(&RunStarted::default()).expect("JSON");
    vec![(EventKind::Created.number(), created), (EventKind::RunStarted.number(), started)]
}

fn fold(log: &[(u16, String)]) -> Projection {
    let mut projection = Projection::default();
    for (seq, (kind, payload)) in (1..).zip(log) {
        projection.see(Position { seq, at_ms: 0 }, *kind, payload.as_bytes());
    }
    assert_eq!(projection.skipped(), 0, "an illegal log: {log:?}");
    projection
}

impl Stage {
    fn new() -> Self {
        Self::with(facts())
    }

    fn with(facts: RunFacts) -> Self {
        let now = Now { at: tokio::time::Instant::now().into_std(), ms: 0 };
        let (log, viewers) = (begun(), Viewers::default());
        let core = SessionCore::new(
            facts,
            fold(&log),
            SessionMeta::default(),
            viewers.clone(),
            Handover::default(),
            now,
        );
        Self { core, viewers, now, log }
    }

    /// Gives inputs; what is appended goes to the log, and the fold over it is the core's own.
    fn take(&mut self, inputs: impl IntoIterator<Item = Input>) -> Effects {
        let effects = self.core.handle(inputs, self.now);
        self.log.extend(effects.recording.events());
        assert_eq!(fold(&self.log), *self.core.log(), "the log says what the core knows");
        effects
    }

    fn wait(&mut self, time: Duration) -> Effects {
        self.now.at += time;
        self.take([Input::Timer])
    }

    fn prompt(&mut self, request: u64) -> Effects {
        self.take([prompt(request)])
    }

    /// The kinds of the events after the beginning.
    fn kinds(&self) -> Vec<&'static str> {
        let name = |kind: u16| EventKind::from_number(kind).map_or("?", EventKind::name);
        self.log.iter().skip(2).map(|(kind, _)| name(*kind)).collect()
    }

    fn last(&self) -> &str {
        &self.log.last().expect("it has begun").1
    }
}

fn prompt(request: u64) -> Input {
    Input::Request {
        request: ClientRequest(request),
        method: "session/prompt".to_owned(),
        params: Some(r#"{"sessionId":"ours","prompt":[{"type":"text","text":"hi"}]}"#.into()),
        client: client("me"),
    }
}

/// A prompt under a key.
fn keyed(request: u64, key: &str, text: &str) -> Input {
    Input::Request {
        request: ClientRequest(request),
        method: "session/prompt".to_owned(),
        params: Some(keyed_params(key, text)),
        client: client("me"),
    }
}

fn keyed_params(key: &str, text: &str) -> Bytes {
    let meta = format!(r#"{{"sandboxagent.dev":{{"idempotencyKey":"{key}"}}}}"#);
    format!(r#"{{"sessionId":"ours","prompt":[{{"type":"text","text":"{text}"}}],"_meta":{meta}}}"#).into()
}

fn cancel() -> Input {
    Input::Notify { method: "session/cancel".to_owned(), params: None, client: client("me") }
}

fn answer_of(ticket: Ticket, body: &str, is_error: bool) -> Input {
    let answer = AgentAnswer { body: Bytes::copy_from_slice(body.as_bytes()), is_error, position: 0 };
    Input::Agent(FromAgent::Answer { ticket, answer })
}

fn turn_answered(turn: u64) -> Input {
    answer_of(Ticket::Turn(TurnNumber(turn)), r#"{"stopReason":"end_turn"}"#, false)
}

fn line(text: &str) -> (Bytes, Option<Range<usize>>) {
    let span = text.find("\"native\"").map(|at| at..at + "\"native\"".len());
    (Bytes::copy_from_slice(text.as_bytes()), span)
}

fn update(text: &str) -> Input {
    let (line, session) = line(&format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"native","update":{text}}}}}"#
    ));
    let update = Some(acpd_record::update_kind(&line));
    Input::Agent(FromAgent::Notification { line, session, update, position: 0 })
}

fn said(text: &str) -> Input {
    update(&format!(
        r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
    ))
}

fn id(text: &str) -> OwnedId {
    let raw: &RawValue = serde_json::from_str(text).expect("JSON");
    acpd_wire::RawId::new(raw).expect("an id").to_owned()
}

/// A request of the agent; `params` without the session id.
fn asks(number: u64, method: &str, params: &str) -> Input {
    let (line, session) = line(&format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{"sessionId":"native",{params}}}}}"#
    ));
    let (id, method) = (id(&number.to_string()), method.to_owned());
    Input::Agent(FromAgent::Request { line, session, id, method, position: 0 })
}

fn permission(number: u64) -> Input {
    let options = r#""toolCall":{"toolCallId":"t"},"options":[{"optionId":"yes","name":"Y","kind":"allow_once"},{"optionId":"no","name":"N","kind":"reject_once"}]"#;
    asks(number, "session/request_permission", options)
}

fn chosen(number: u64, option: &str) -> Input {
    let result = format!(r#"{{"outcome":{{"outcome":"selected","optionId":"{option}"}}}}"#);
    Input::Answer { number: QuestionNumber(number), result: Some(result.into()), client: client("me") }
}

/// What the agent is told, in short: methods, and answers by the id of what they answer.
fn told(effects: &Effects) -> Vec<String> {
    let frame = |frame: &Bytes| match Message::parse(frame).expect("a message") {
        Message::Response { id, outcome } => {
            let (what, body) = outcome.map_or_else(|error| ("error", error), |result| ("result", result));
            format!("{what} of {}: {body}", id.expect("it answers something"))
        }
        other => panic!("{other:?}"),
    };
    let told = effects.acts.iter().filter_map(|ordered| match &ordered.act {
        Act::Request { method, ticket, .. } => Some(format!("{method} {ticket:?}")),
        Act::Notify { method, .. } => Some(method.clone()),
        Act::Answer { frame: line, .. } => Some(frame(line)),
        Act::Withdraw(ticket) => Some(format!("withdraw {ticket:?}")),
        Act::Close { .. } => Some("close".to_owned()),
        _ => None,
    });
    told.collect()
}

/// What clients are answered: the request, the event that the answer stands behind, and the result or the error.
fn answered(effects: &Effects) -> Vec<(u64, u64, String)> {
    let body = |body: &Result<Bytes, crate::HostError>| match body {
        Ok(result) => String::from_utf8(result.to_vec()).expect("text"),
        Err(error) => error.to_string(),
    };
    let answers = effects.answers.iter();
    answers.map(|answer| (answer.request.0, answer.after.expect("set"), body(&answer.body))).collect()
}

fn acts(effects: &Effects, is_it: impl Fn(&Act) -> bool) -> usize {
    effects.acts.iter().filter(|ordered| is_it(&ordered.act)).count()
}

fn end(cause: acpd_record::Cause) -> Input {
    Input::End(RequestedEnd { cause, initiator: "me".to_owned() })
}

fn stops(effects: &Effects) -> Option<Stop> {
    effects.stop
}
