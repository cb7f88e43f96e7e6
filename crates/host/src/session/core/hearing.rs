//! What the agent says, and how long it says nothing.
//!
//! An agent is waited for in a turn, unless it waits itself: for the answer to a question, or for something that acpd does
//! for it. Invariant: a turn is told to have stalled once, and again only after it was told to go on.

use super::{AgentAsks, Now, SessionCore};
use crate::agent::{FromAgent, Ticket};
use crate::session::effects::{Effects, Note};
use acpd_record::{Event, RawMessage, Stalled, update_kind};
use acpd_wire::UpdateKind;
use bytes::Bytes;
use std::ops::Range;
use std::time::Instant;

/// How long nothing has come from the agent.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Since when; `None` while it is not waited for, or stalls are not told.
    since: Option<Instant>,
}

impl SessionCore {
    pub(super) fn agent_says(&mut self, message: FromAgent, now: Now, out: &mut Effects) {
        self.ends_silence(&message, now, out);
        if let Some(position) = message.position() {
            self.heard(position);
        }
        match message {
            FromAgent::Notification { line, session, update: Some(kind), .. } => {
                self.updated(&line, session, kind, out);
            }
            FromAgent::Notification { line, session, update: None, .. } => {
                self.notified(&line, session, out);
            }
            FromAgent::Withdrawn { id, .. } => {
                self.agent_withdraws(&id, out);
                self.withdraw_service(&id, out);
            }
            FromAgent::Request { line, session, id, method, .. } => {
                let request = AgentAsks { line: &line, session, id: &id, method: &method };
                self.agent_asks(&request, now, out);
            }
            FromAgent::Answer { ticket, answer } => self.agent_answers(ticket, &answer, now, out),
            FromAgent::NotReading { ticket, waiting } => self.agent_does_not_read(ticket, waiting, out),
        }
    }

    fn updated(&mut self, line: &Bytes, session: Option<Range<usize>>, kind: UpdateKind, out: &mut Effects) {
        let is_of_user = kind == UpdateKind::UserMessageChunk;
        if is_of_user && self.volatile.handover.is_repeated_by(line) {
            return;
        }
        let is_echo = is_of_user && self.repeats_prompt(line);
        let id = self.facts.id.clone();
        let message = RawMessage::of_agent(line, session, id.as_json()).of_kind(kind);
        let event = if is_echo { Event::Echo(message) } else { Event::Update(message) };
        self.append(&event, out);
    }

    /// Whether an update repeats a part of the prompt whose turn is running (PR-3).
    pub(crate) fn is_echo(&self, line: &[u8]) -> bool {
        update_kind(line) == UpdateKind::UserMessageChunk && self.repeats_prompt(line)
    }

    fn repeats_prompt(&self, line: &[u8]) -> bool {
        self.log.unfinished_turn().is_some_and(|turn| turn.is_echoed_by(line))
    }

    /// Inputs were taken; `heard`: of the agent, too.
    pub(super) fn listen(&mut self, heard: bool, now: Now) {
        let since = self.volatile.silence.since.filter(|_| !heard);
        self.volatile.silence.since = self.waits_for_agent().then(|| since.unwrap_or(now.at));
    }

    /// Whether it is the agent's part to go on.
    fn waits_for_agent(&self) -> bool {
        self.facts.limits.stall.is_some()
            && self.volatile.turns.active()
            && self.volatile.ending.is_none()
            && self.volatile.serving.is_empty()
            && self.log.open_questions().next().is_none()
    }

    /// When the turn stalls, unless something comes.
    pub(super) fn stalls_at(&self) -> Option<Instant> {
        let is_told = self.log.running_turn().is_none_or(|turn| turn.stalled());
        let since = self.volatile.silence.since.filter(|_| !is_told)?;
        Some(since + self.facts.limits.stall?)
    }

    pub(super) fn time_of_silence(&mut self, now: Now, out: &mut Effects) {
        if self.stalls_at().is_some_and(|at| now.at >= at) {
            self.tell_silence(false, now, out);
        }
    }

    /// Something comes, which an answer to the prompt says by itself.
    fn ends_silence(&mut self, message: &FromAgent, now: Now, out: &mut Effects) {
        let ends_turn = match message {
            FromAgent::Answer { ticket, .. } | FromAgent::NotReading { ticket, .. } => {
                matches!(ticket, Ticket::Turn(_))
            }
            _ => false,
        };
        if !ends_turn && self.log.running_turn().is_some_and(|turn| turn.stalled()) {
            self.tell_silence(true, now, out);
        }
    }

    fn tell_silence(&mut self, goes_on: bool, now: Now, out: &mut Effects) {
        let Some(turn) = self.log.running_turn().map(|turn| turn.number) else { return };
        let since = self.volatile.silence.since.unwrap_or(now.at);
        let silent = now.at.saturating_duration_since(since);
        let silent_ms = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
        self.append(&Event::Stalled(Stalled { turn, silent_ms, goes_on }), out);
        out.note(if goes_on { Note::GoesOn { turn, silent } } else { Note::Stalled { turn, silent } });
    }
}
