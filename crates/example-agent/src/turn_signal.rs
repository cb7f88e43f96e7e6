//! How the reading thread reaches a running turn: cancellation and the client's answers. Shared by the two.
//!
//! Invariants: a cancellation is never lost and never taken back; an answer is handed out once.
//! Not the turn itself: it decides nothing and writes nothing.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::wire::Reply;

/// The mailbox of one turn.
#[derive(Debug, Default)]
pub(crate) struct TurnSignal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    replies: HashMap<u64, Reply>,
}

/// What ends the wait for an answer besides the answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Patience {
    pub(crate) heeds_cancel: bool,
    pub(crate) limit: Option<Duration>,
}

/// How the wait for an answer ended.
#[derive(Debug)]
pub(crate) enum Waited {
    Answered(Reply),
    Cancelled,
    TimedOut,
}

impl TurnSignal {
    pub(crate) fn cancel(&self) {
        self.state().cancelled = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    pub(crate) fn deliver(&self, call: u64, reply: Reply) {
        self.state().replies.insert(call, reply);
        self.changed.notify_all();
    }

    /// Waits for the cancellation, at most `limit`. True if it came.
    pub(crate) fn wait_cancelled(&self, limit: Option<Duration>) -> bool {
        self.wait(limit, |state| state.cancelled).cancelled
    }

    pub(crate) fn wait_reply(&self, call: u64, patience: Patience) -> Waited {
        let arrived =
            |state: &State| state.replies.contains_key(&call) || (patience.heeds_cancel && state.cancelled);
        let mut state = self.wait(patience.limit, arrived);
        match state.replies.remove(&call) {
            Some(reply) => Waited::Answered(reply),
            None if patience.heeds_cancel && state.cancelled => Waited::Cancelled,
            None => Waited::TimedOut,
        }
    }

    fn wait(&self, limit: Option<Duration>, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.state();
        let result = match limit {
            None => self.changed.wait_while(state, |state| !done(state)).ok(),
            Some(limit) => {
                let waited = self.changed.wait_timeout_while(state, limit, |state| !done(state));
                waited.ok().map(|(state, _)| state)
            }
        };
        result.expect("no holder panics")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }
}
