//! The turns of a session: one at a time, the rest in line, cancel bounded.
//!
//! A state machine without IO and without a clock: inputs come with `now`, steps to perform go out. ACP leaves a
//! second prompt open; here it waits its turn (PR-8). An agent that ignores `session/cancel` loses its say over
//! the answer after a bound (PR-6), but the next prompt still waits until it is really done with the last one,
//! so that two turns never mix.

use super::ClientRequest;
use acpd_record::RunningTurn;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Prompts that may wait behind the running one.
pub(super) const QUEUE: usize = 16;

/// What the session has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Record the prompt and send it to the agent.
    Begin(ClientRequest),
    /// Send `session/cancel` to the agent.
    SendCancel,
    /// The same, though no turn is known to run: some agents answer a prompt and work on.
    PassCancel,
    /// Give the agent's answer to the client and record the end of the turn.
    Finish(ClientRequest),
    /// The agent ignored the cancel: withdraw the prompt, answer `cancelled` and record it.
    GiveUp(ClientRequest),
    /// A prompt that never began is answered `cancelled`.
    Drop(ClientRequest),
    /// Too many wait.
    Refuse(ClientRequest),
    /// The answer to a turn that was given up is dropped.
    Ignore(ClientRequest),
}

/// Where a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its turn runs.
    Runs,
    /// In line, behind so many prompts; the one that the agent works on is one of them.
    Waits { before: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Running(ClientRequest),
    /// Cancel was sent; `until` bounds the agent's silence.
    Cancelling {
        request: ClientRequest,
        until: Option<Instant>,
    },
    /// We have answered for the agent, which still works on it.
    GivenUp(ClientRequest),
}

/// The turns of one session.
#[derive(Debug)]
pub(super) struct Turns {
    state: State,
    queue: VecDeque<ClientRequest>,
    cancel_timeout: Option<Duration>,
}

impl Turns {
    pub(super) fn new(cancel_timeout: Option<Duration>) -> Self {
        Self { state: State::Idle, queue: VecDeque::new(), cancel_timeout }
    }

    /// After a restart of the host: the agent may work on `turn`. The request that began it was lost with its connection.
    pub(super) fn resumed(
        cancel_timeout: Option<Duration>,
        turn: Option<&RunningTurn>,
        now: Instant,
    ) -> Self {
        let request = ClientRequest::LOST;
        let state = match turn {
            None => State::Idle,
            Some(turn) if turn.given_up() => State::GivenUp(request),
            Some(turn) if turn.cancel_requested() => {
                State::Cancelling { request, until: cancel_timeout.map(|timeout| now + timeout) }
            }
            Some(_) => State::Running(request),
        };
        Self { state, ..Self::new(cancel_timeout) }
    }

    /// A turn is running, for all a client can see.
    pub(super) fn active(&self) -> bool {
        matches!(self.state, State::Running(_) | State::Cancelling { .. })
    }

    /// The agent works on a turn, whether a client still waits for it or not.
    pub(super) fn busy(&self) -> bool {
        self.state != State::Idle
    }

    /// Whether the running turn was cancelled.
    pub(super) fn cancelling(&self) -> bool {
        matches!(self.state, State::Cancelling { .. })
    }

    /// Prompts in line.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Where a prompt is; `None` when it is over, or was refused.
    pub(super) fn place(&self, request: ClientRequest) -> Option<Place> {
        match self.state {
            State::Running(running) | State::Cancelling { request: running, .. } if running == request => {
                Some(Place::Runs)
            }
            _ => {
                let place = self.queue.iter().position(|waiting| *waiting == request)?;
                Some(Place::Waits { before: place + 1 })
            }
        }
    }

    /// A client prompts.
    pub(super) fn prompt(&mut self, request: ClientRequest) -> Option<Step> {
        if self.state == State::Idle {
            self.state = State::Running(request);
            return Some(Step::Begin(request));
        }
        if self.queue.len() >= QUEUE {
            return Some(Step::Refuse(request));
        }
        self.queue.push_back(request);
        None
    }

    /// A client cancels. The agent hears of it, whether or not a turn is known to run (contract 7.3), but not twice in
    /// one turn.
    pub(super) fn cancel_of_client(&mut self, now: Instant) -> [Option<Step>; 2] {
        match self.state {
            State::Running(_) | State::Cancelling { .. } => [self.cancel(now), None],
            State::Idle | State::GivenUp(_) => [self.cancel(now), Some(Step::PassCancel)],
        }
    }

    /// The turn is to end. Without one there is nothing to do (PR-7).
    pub(super) fn cancel(&mut self, now: Instant) -> Option<Step> {
        match self.state {
            State::Running(request) => {
                self.state = State::Cancelling { request, until: self.cancel_timeout.map(|t| now + t) };
                Some(Step::SendCancel)
            }
            // What looks like the running turn to a client is the first in line.
            State::GivenUp(_) => self.queue.pop_front().map(Step::Drop),
            State::Idle | State::Cancelling { .. } => None,
        }
    }

    /// A client withdraws one prompt.
    pub(super) fn withdraw(&mut self, request: ClientRequest, now: Instant) -> Option<Step> {
        if self.state == State::Running(request) {
            return self.cancel(now);
        }
        let place = self.queue.iter().position(|waiting| *waiting == request)?;
        self.queue.remove(place).map(Step::Drop)
    }

    /// No turn begins any more; those in line are given back.
    pub(super) fn close(&mut self) -> Vec<Step> {
        self.queue.drain(..).map(Step::Drop).collect()
    }

    /// The agent answered the prompt that it works on.
    pub(super) fn answered(&mut self) -> [Option<Step>; 2] {
        let step = match self.state {
            State::Running(request) | State::Cancelling { request, .. } => Step::Finish(request),
            State::GivenUp(request) => Step::Ignore(request),
            State::Idle => return [None, None],
        };
        self.state = State::Idle;
        let next = self.queue.pop_front().inspect(|next| self.state = State::Running(*next));
        [Some(step), next.map(Step::Begin)]
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, now: Instant) -> Option<Step> {
        match self.state {
            State::Cancelling { request, until: Some(until) } if now >= until => {
                self.state = State::GivenUp(request);
                Some(Step::GiveUp(request))
            }
            _ => None,
        }
    }

    /// When [`tick`](Self::tick) is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Cancelling { until, .. } => until,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
