//! A session that this process has taken up. Owned by the agent's table, shared with its turn.
//!
//! Invariants: at most one turn runs; what must wait for its end (close, delete) is answered right after the
//! prompt's own answer, under the same lock, so that nothing can come between.
//! Not the history: it keeps only what the next turn needs to know.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;

use crate::history::Past;
use crate::settings::Settings;
use crate::turn_signal::TurnSignal;
use crate::wire::Raw;

/// A live session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) cwd: String,
    /// The parameters with which it was taken up, for the `params` directive.
    pub(crate) params: Value,
    ignores_cancel: AtomicBool,
    state: Mutex<SessionState>,
}

/// The part that changes.
#[derive(Debug)]
pub(crate) struct SessionState {
    pub(crate) settings: Settings,
    pub(crate) turns: u64,
    pub(crate) running: Option<Running>,
    pub(crate) after_turn: Vec<Farewell>,
}

/// The turn that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) prompt: Raw,
    pub(crate) signal: Arc<TurnSignal>,
}

/// A request that ends the session and waits for its turn to end.
#[derive(Debug)]
pub(crate) struct Farewell {
    pub(crate) request: Raw,
    pub(crate) deletes: bool,
}

impl Session {
    pub(crate) fn new(id: String, cwd: String, params: Value, past: &Past) -> Self {
        let state = SessionState {
            settings: past.settings.clone(),
            turns: past.turns,
            running: None,
            after_turn: Vec::new(),
        };
        Self { id, cwd, params, ignores_cancel: AtomicBool::new(false), state: Mutex::new(state) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().expect("no holder panics")
    }

    pub(crate) fn ignore_cancel(&self) {
        self.ignores_cancel.store(true, Ordering::SeqCst);
    }

    /// Cancels the turn that runs, if any and if it listens.
    pub(crate) fn cancel(&self, state: &SessionState) {
        if let (Some(running), false) = (&state.running, self.ignores_cancel.load(Ordering::SeqCst)) {
            running.signal.cancel();
        }
    }
}
