//! How a run comes to its end: what is waited for, and the record.
//!
//! Invariant: the first cause wins, and nothing that was asked is left open.

use super::{AfterTurn, Ended, Now, SessionCore};
use crate::acp;
use crate::agent::AgentAnswer;
use crate::error::HostError;
use crate::session::effects::{Act, Answer, Effects, Stop};
use crate::session::questions::AutoAnswer;
use crate::termination::{self, Complete, RequestedEnd, SessionFacts};
use acpd_eventlog::IndexUpdate;
use acpd_record::{Cause, Event, TerminationInfo};
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The wait of a hurried end for its cancelled turn: together with the ladder's graces it stays below their sum and a
/// second (contract 1.1.6). Under load agents take longer than 300 ms to answer a cancel.
const HURRIED: Duration = Duration::from_millis(600);

/// The end that was asked for.
#[derive(Debug)]
pub(crate) struct Ending {
    requested: RequestedEnd,
    /// When the ladder starts though the turn has not ended, or the agent has not closed; `None` once it was started.
    settles_at: Option<Instant>,
    /// The agent was asked to close its session.
    close: Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Close {
    NotAsked,
    /// Its answer is waited for.
    Asked,
    Over,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct EndOfRun {
    pub(crate) ended: Ended,
    /// Why nothing could be recorded any more, if so.
    pub(crate) failure: Option<String>,
    /// The last event that was committed.
    pub(crate) committed: u64,
}

impl Ending {
    /// Whether the agent is asked to close its session first: to let it save, or because it keeps the process.
    fn may_close(&self, shared: bool) -> bool {
        self.close == Close::NotAsked && (shared || self.requested.cause == Cause::ClientClose)
    }
}

impl SessionCore {
    pub(super) fn settles_at(&self) -> Option<Instant> {
        self.volatile.ending.as_ref().and_then(|ending| ending.settles_at)
    }

    /// The first cause wins; a later one waits for the same end.
    pub(super) fn begin_end(&mut self, requested: RequestedEnd, now: Now, out: &mut Effects) {
        if let Some(ending) = &mut self.volatile.ending {
            let gentler = ending.requested.cause != Cause::ClientTerminate;
            // Terminate does not wait for a gentler end to settle; the record stays. The ladder runs once.
            if gentler && requested.cause == Cause::ClientTerminate && ending.settles_at.take().is_some() {
                self.release(out);
            }
            return;
        }
        for step in self.volatile.turns.close() {
            self.step(Some(step), out);
        }
        // Before the answers to its questions, or it could take them for a reason to go on (PR-5).
        let step = self.volatile.turns.cancel(now.at);
        self.step(step, out);
        self.resolve_all(AutoAnswer::Ended, out);
        out.act(Act::ReleaseTerminals);
        // A host that dies before the end is recorded leaves it to the next one.
        if let Some(ending) = requested.in_progress() {
            self.meta.ending = Some(ending);
            out.recording.index(IndexUpdate { info: Some(self.meta.write()), ..IndexUpdate::default() });
        }
        let settles_at = self.volatile.turns.active().then(|| now.at + self.settles_within(requested.cause));
        self.volatile.ending = Some(Ending { requested, settles_at, close: Close::NotAsked });
        if settles_at.is_none() {
            self.settled(now, out);
        }
    }

    /// The time that the cancelled turn has to end, so that its end is recorded.
    fn settles_within(&self, cause: Cause) -> Duration {
        let within = self.facts.limits.settle_turn;
        if cause == Cause::ClientClose { within } else { within.min(HURRIED) }
    }

    /// Ends a run that is to be closed behind a turn. A prompt that waits was accepted, so its turn comes first.
    pub(super) fn close_after_turn(&mut self, now: Now, out: &mut Effects) {
        let Some(AfterTurn { client, turns: before }) = &self.facts.after_turn else { return };
        let turns = &self.volatile.turns;
        let is_done = self.log.turns() > *before && !turns.active() && turns.waiting() == 0;
        if is_done && self.log.is_live() && !self.is_ending() && !self.volatile.log_failed {
            let requested = RequestedEnd { cause: Cause::ClientClose, initiator: client.to_string() };
            self.begin_end(requested, now, out);
        }
    }

    /// The turn of an ending session is over. An agent that can close its session may do so before the ladder.
    pub(super) fn settled(&mut self, now: Now, out: &mut Effects) {
        let (shared, settle) = (self.facts.is_shared, self.facts.limits.settle);
        let Some(ending) = &mut self.volatile.ending else { return };
        if ending.may_close(shared) {
            (ending.close, ending.settles_at) = (Close::Asked, Some(now.at + settle));
            self.send_close(out);
        } else {
            ending.settles_at = None;
            self.release(out);
        }
    }

    /// The agent answered that it has closed its session, or that it could not.
    pub(super) fn closed(&mut self, answer: &AgentAnswer, out: &mut Effects) {
        if answer.is_error
            && super::requesting::error_code(&answer.body) == Some(acpd_wire::codes::METHOD_NOT_FOUND)
        {
            out.act(Act::CloseIsMissing);
        }
        self.close_is_over(out);
    }

    /// The agent has no way to close its session.
    pub(super) fn cannot_close(&mut self, out: &mut Effects) {
        self.close_is_over(out);
    }

    fn close_is_over(&mut self, out: &mut Effects) {
        let Some(ending) = &mut self.volatile.ending else { return };
        if ending.close == Close::Asked {
            ending.close = Close::Over;
            if ending.settles_at.take().is_some() {
                self.release(out);
            }
        }
    }

    /// A process of its own is stopped; a shared one goes on without this session (contract 1.1). It is still told to close
    /// what it keeps, but that is not waited for.
    fn release(&mut self, out: &mut Effects) {
        if !self.facts.is_shared {
            out.stop = Some(Stop::Agent);
            return;
        }
        let ending = self.volatile.ending.as_mut();
        if let Some(ending) = ending.filter(|ending| ending.may_close(true)) {
            ending.close = Close::Over;
            self.send_close(out);
        }
        self.answer_running(out);
        out.stop = Some(Stop::Leave);
    }

    pub(super) fn time_passed(&mut self, now: Now, out: &mut Effects) {
        if self.volatile.idle_at.take_if(|at| now.at >= *at).is_some() {
            let requested = RequestedEnd { cause: Cause::IdleTimeout, initiator: "daemon".to_owned() };
            self.begin_end(requested, now, out);
        }
        self.time_of_silence(now, out);
        if self.volatile.continuation.orphans_at.take_if(|at| now.at >= *at).is_some() {
            self.viewer_left(out);
        }
        let step = self.volatile.turns.tick(now.at);
        self.step(step, out);
        self.resolve_due(now, out);
        if let Some(ending) = &mut self.volatile.ending
            && ending.settles_at.take_if(|at| now.at >= *at).is_some()
        {
            self.release(out);
        }
    }

    pub(super) fn log_failed(&mut self, out: &mut Effects) {
        if !self.volatile.log_failed {
            self.volatile.log_failed = true;
            self.release(out);
        }
    }

    /// The run is over: its record, and the answers to all that is still open.
    pub(super) fn over(&mut self, end: &EndOfRun, out: &mut Effects) {
        let facts = SessionFacts {
            turn_active: self.volatile.turns.active(),
            last_stop_reason: self.log.last_stop_reason().map(str::to_owned),
            started_ms: Some(self.log.run_started_ms()),
            last_event_seq: None,
        };
        // What was lost on its way to the log has no number.
        let lost = self.log.last_seq() - end.committed.min(self.log.last_seq());
        self.resolve_all(AutoAnswer::Ended, out);
        out.acts.retain(|ordered| matches!(ordered.act, Act::Note(_)));
        let last = self.log.last_seq() - lost;
        let info = self.record_of(end, &SessionFacts { last_event_seq: Some(last), ..facts }, out);
        self.meta.ended(&info);
        self.append(&Event::Ended(Box::new(info.clone())), out);
        self.meta.tally = self.log.tally(u64::MAX);
        out.recording.index(IndexUpdate {
            ended: Some(true),
            owner: Some(None),
            info: Some(self.meta.write()),
            ..IndexUpdate::default()
        });
        let info = Arc::new(info);
        self.answer_open(&info, last + 1, out);
        out.ended = Some(info);
    }

    fn record_of(&self, end: &EndOfRun, facts: &SessionFacts, out: &Effects) -> TerminationInfo {
        let left = || self.meta.ending.clone().map(RequestedEnd::from);
        let requested = self.volatile.ending.as_ref().map(|ending| ending.requested.clone()).or_else(left);
        let requested = requested.as_ref();
        let now = out.recording.now_ms();
        match (&end.failure, &end.ended, requested) {
            (Some(why), Ended::Gone(agent), _) => {
                termination::of_failure(why.clone(), facts, now).with_process(&agent.report)
            }
            (None, Ended::Gone(agent), None) if self.facts.is_kept => {
                termination::in_the_gap(agent, facts, now)
            }
            (None, Ended::Gone(agent), requested) => termination::of_agent(agent, requested, facts, now),
            (None, Ended::Released, Some(requested)) => termination::of_release(requested, facts, now),
            (failure, Ended::Released, _) => {
                let why = failure.clone().unwrap_or_else(|| "the session was released".to_owned());
                termination::of_failure(why, facts, now)
            }
        }
    }

    /// PR-11: nothing that was asked is left open. A turn that was asked to end is `cancelled`, any other is interrupted.
    /// The answers stand in front of the end: a viewer that sees it has them then (contract 7.3).
    fn answer_open(&mut self, info: &Arc<TerminationInfo>, end: u64, out: &mut Effects) {
        let asked_to_end = self.is_ending();
        let (after, before) = (Some(end.saturating_sub(1)), Some(end));
        for (request, is_prompt) in self.volatile.requests.take_all() {
            let body = match asked_to_end && is_prompt {
                true => Ok(Bytes::from_static(acp::CANCELLED_RESULT)),
                false => Err(HostError::AgentGone { info: Arc::clone(info) }),
            };
            out.answers.push(Answer { request, body, after, before });
        }
        let id = self.facts.id.to_string();
        for request in self.volatile.requests.take_late() {
            let body = Err(HostError::SessionEnded { id: id.clone(), info: Arc::clone(info) });
            out.answers.push(Answer { request, body, after: Some(end), before: None });
        }
    }
}
