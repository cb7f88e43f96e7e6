//! How a session comes to its end: who asked first, what is waited for, and the record.
//!
//! Part of the session task. Invariant: the record is durable before anybody is told, and nobody is left waiting.

use super::super::pending::{Replies, refuse};
use super::{Outputs, SessionTask, ToAgent};
use crate::acp;
use crate::agent::{AgentEnd, Ticket};
use crate::error::HostError;
use crate::session::ingest::Record;
use crate::session::questions::AutoAnswer;
use crate::termination::{Complete, RequestedEnd, chain};
use acpd_eventlog::{IndexUpdate, WriteError};
use acpd_record::Cause;
use acpd_record::EventKind;
use bytes::Bytes;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How a run came to its end.
pub(super) enum Ended {
    /// Its process is gone.
    Gone(Arc<AgentEnd>),
    /// It left a process that others share.
    Released,
}

/// Somebody asked for the end.
pub(super) struct Ending {
    pub(super) requested: RequestedEnd,
    /// When the ladder starts though the turn has not ended; None once it was started.
    pub(super) ladder_at: Option<Instant>,
    pub(super) waiting: Vec<oneshot::Sender<u64>>,
    /// The agent's own `session/close` is not answered yet.
    pub(super) closing: Option<Ticket>,
}

impl Ending {
    /// Whether the agent is asked to close its session first: to let it save, or because it keeps the process.
    pub(super) fn may_close(&self, shared: bool) -> bool {
        self.closing.is_none() && (shared || self.requested.cause == Cause::ClientClose)
    }
}

impl SessionTask {
    pub(super) fn ladder_at(&self) -> Option<Instant> {
        self.ending.as_ref().and_then(|ending| ending.ladder_at)
    }

    /// The first cause wins; whoever asks later waits for the same end.
    pub(super) fn begin_end(
        &mut self,
        requested: RequestedEnd,
        waiting: Option<oneshot::Sender<u64>>,
        out: &mut Outputs,
    ) {
        if let Some(ending) = &mut self.ending {
            ending.waiting.extend(waiting);
            let gentler = ending.requested.cause != Cause::ClientTerminate;
            // Who terminates does not wait for a gentler end to settle; its record stays. The ladder runs once.
            if gentler && requested.cause == Cause::ClientTerminate && ending.ladder_at.take().is_some() {
                self.release(&mut out.to_agent);
            }
            return;
        }
        for step in self.turns.close() {
            self.steps(Some(step), None, out);
        }
        // Before the answers to its questions, or it could take them for a reason to go on (PR-5).
        let step = self.turns.cancel(Self::now());
        self.steps(step, None, out);
        self.sweep_questions(AutoAnswer::Ended, out);
        self.begin_release();
        let settle = self.turns.active().then(|| Self::now() + self.parts.settle);
        let waiting = waiting.into_iter().collect();
        self.ending = Some(Ending { requested, ladder_at: settle, waiting, closing: None });
        if settle.is_none() {
            self.settled(out);
        }
    }

    /// The turn of an ending session is over. An agent that can close its session may do so before the ladder.
    pub(super) fn settled(&mut self, out: &mut Outputs) {
        if self.ask_to_close(&mut out.to_agent) {
            let until = Self::now() + self.parts.settle;
            self.ending.iter_mut().for_each(|ending| ending.ladder_at = Some(until));
        } else {
            self.ending.iter_mut().for_each(|ending| ending.ladder_at = None);
            self.release(&mut out.to_agent);
        }
    }

    /// OpenQuestions the agent to close its session, once, if it can and may; an ending session only.
    fn ask_to_close(&mut self, to_agent: &mut Vec<ToAgent>) -> bool {
        let Some(method) = self.parts.agent.close_method() else { return false };
        let shared = self.parts.agent.is_shared();
        let Some(ending) = self.ending.as_mut().filter(|ending| ending.may_close(shared)) else {
            return false;
        };
        let params = Bytes::from(format!("{{\"sessionId\":{}}}", self.parts.native));
        let ticket = self.pending.open_own(method.to_owned(), params);
        ending.closing = Some(ticket);
        to_agent.push(ToAgent::Request(ticket));
        true
    }

    /// A process of its own is stopped; a shared one goes on without this session (contract 1.1). It is still told
    /// to close what it keeps, but nobody waits for that.
    pub(super) fn release(&mut self, to_agent: &mut Vec<ToAgent>) {
        if self.parts.agent.is_shared() {
            self.ask_to_close(to_agent);
            self.answer_running(to_agent);
            self.released = true;
        } else {
            self.parts.agent.stop();
        }
    }

    pub(super) fn timer(&mut self, out: &mut Outputs) {
        let now = Self::now();
        if self.idle_at.take_if(|at| now >= *at).is_some() {
            let requested = RequestedEnd { cause: Cause::IdleTimeout, initiator: "daemon".to_owned() };
            self.begin_end(requested, None, out);
        }
        let step = self.turns.tick(now);
        self.steps(step, None, out);
        self.questions_due(out);
        if let Some(ending) = &mut self.ending
            && ending.ladder_at.take_if(|at| now >= *at).is_some()
        {
            self.release(&mut out.to_agent);
        }
    }

    pub(super) fn log_failed(&mut self, error: WriteError, to_agent: &mut Vec<ToAgent>) {
        self.not_recorded(error);
        self.release(to_agent);
    }

    /// Told once: the first failure is the cause of all others.
    fn not_recorded(&mut self, error: WriteError) {
        if self.failure.is_none() {
            self.parts.journal.not_recorded(&error);
            self.failure = Some(error);
        }
    }

    /// TE-10, TE-11: nothing of the session's terminals lives when it has ended, and what they said last is in the log.
    async fn record_last_output(&mut self) {
        let mut out = Outputs::default();
        self.release_terminals(&mut out).await;
        if !out.record.is_empty()
            && self.failure.is_none()
            && let Err(error) = self.parts.appender.append(out.record.into_batch()).await
        {
            self.not_recorded(error);
        }
    }

    /// The run is over: the record becomes durable, then everybody is told.
    pub(super) async fn finish(mut self: Box<Self>, end: Ended) {
        self.facts.turn_active = self.turns.active();
        self.abandon_running();
        self.record_last_output().await;
        // What is lost on its way to the log has no number.
        let mut committed = self.parts.appender.committed();
        if let Err(error) = committed.wait_for(self.last_seq()).await {
            self.not_recorded(error);
        }
        let last = committed.seq();
        let mut record = Record::new();
        self.record_abandoned(&mut record);
        self.facts.last_event_seq = Some(last + record.len());
        let requested = self.ending.as_ref().map(|ending| &ending.requested);
        let now = record.now_ms();
        let info = match (&self.failure, &end, requested) {
            (Some(error), Ended::Gone(end), _) => {
                crate::termination::of_failure(chain(error), &self.facts, now).with_process(&end.report)
            }
            (None, Ended::Gone(end), requested) => {
                crate::termination::of_agent(end, requested, &self.facts, now)
            }
            (None, Ended::Released, Some(requested)) => {
                crate::termination::of_release(requested, &self.facts, now)
            }
            (failure, Ended::Released, _) => {
                let message =
                    failure.as_ref().map_or_else(|| "the session was released".to_owned(), |e| chain(e));
                crate::termination::of_failure(message, &self.facts, now)
            }
        };
        self.parts.meta.ended(&info);
        record.object(EventKind::Ended, &json!(info));
        record.index(IndexUpdate {
            ended: Some(true),
            owner: Some(None),
            info: Some(self.parts.meta.write()),
            ..IndexUpdate::default()
        });
        let leftovers = match &end {
            Ended::Gone(end) => end.report.leaked,
            Ended::Released => 0,
        };
        let end = last + record.len();
        let info = Arc::new(info);
        // PR-11: nothing that was asked is left open. A turn that was asked to end is `cancelled`, any other is
        // interrupted. The answers are handed out first: a viewer that sees the end has them then.
        let mut replies = Replies::default();
        for ticket in self.pending.tickets() {
            let asked_to_end = self.ending.is_some();
            let is_prompt = self.pending.get(ticket).is_some_and(|pending| pending.is_prompt);
            let body = match asked_to_end && is_prompt {
                true => Ok(Bytes::from_static(acp::CANCELLED_RESULT)),
                false => Err(HostError::AgentGone { info: Arc::clone(&info) }),
            };
            self.pending.answer(ticket, body, &mut replies);
        }
        replies.send_ahead_of(end);
        // What is said behind the end is said behind this number, also if it could not be recorded.
        if let Err(error) = self.parts.appender.append_final(record.into_batch()).await {
            tracing::error!(session = %self.parts.id, error = chain(&error), "the end could not be recorded");
        }
        self.parts.journal.ended(&info, leftovers);
        self.parts.ended.send_replace(Some(Arc::clone(&info)));

        let error = HostError::SessionEnded { id: self.parts.id.to_string(), info };
        self.parts.commands.close();
        for command in std::mem::take(&mut self.late) {
            refuse(command, &error, end);
        }
        while let Some(command) = self.parts.commands.recv().await {
            refuse(*command, &error, end);
        }
        for done in self.ending.into_iter().flat_map(|ending| ending.waiting) {
            let _left = done.send(end);
        }
    }
}

impl RequestedEnd {
    pub(super) fn shutdown(initiator: &str) -> Self {
        Self { cause: Cause::DaemonShutdown, initiator: initiator.to_owned() }
    }
}
