//! The tool calls of a turn, told apart by their ids.
//!
//! Invariants: a call is told as finished once; what is kept is bounded. An update of an unknown call opens it, because
//! agents ask for permission, and report, before they announce.

use std::collections::VecDeque;
use std::path::Path;

use serde_json::Value;

use super::call::{Call, FileChange, State};
use super::paint::Paint;

/// At most this many calls are remembered; the oldest are forgotten, open or not.
const REMEMBERED: usize = 512;
/// So many bytes of an id tell calls apart; real ones have about 40.
const ID_BYTES: usize = 256;
/// Changes that a question has shown need not be shown again when they are made. Of so many questions.
const TOLD: usize = 16;

/// What an update changed.
#[derive(Debug)]
pub(super) enum Change<'a> {
    /// A call to show.
    Opened(&'a Call),
    /// An open call may look different.
    Changed,
    /// Completed or failed, for the first time; its changes were told by a question, perhaps.
    Finished(&'a Call, Option<&'a [FileChange]>),
    /// Nothing to show.
    Nothing,
    /// No id: the call that it is about is not known.
    Unreadable,
}

/// All calls, in the order they were announced.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: VecDeque<Call>,
    /// How many there were.
    pub(super) total: usize,
    /// How many failed.
    pub(super) failed: usize,
    told: VecDeque<(String, Vec<FileChange>)>,
}

impl Calls {
    /// Takes in a `tool_call` or `tool_call_update`.
    pub(super) fn take(&mut self, update: &Value, cwd: Option<&Path>, paint: Paint) -> Change<'_> {
        let Some(id) = call_id(update) else { return Change::Unreadable };
        let announced = update.get("sessionUpdate").and_then(Value::as_str) == Some("tool_call");
        let state = match update.get("status").and_then(Value::as_str) {
            Some("completed") => State::Completed,
            Some("failed") => State::Failed,
            _ => State::Open,
        };
        let known = self.calls.iter().rposition(|call| call.id == id);
        let reused = |at: usize| announced && state == State::Open && self.calls[at].state != State::Open;
        let (at, opened) = match known {
            Some(at) if !reused(at) => (at, false),
            _ => (self.open(id), true),
        };
        let call = &mut self.calls[at];
        if call.state != State::Open {
            return Change::Nothing;
        }
        call.merge(update, cwd, paint);
        call.state = state;
        if state == State::Failed {
            self.failed += 1;
        }
        let call = &self.calls[at];
        match (state, opened) {
            (State::Open, true) => Change::Opened(call),
            (State::Open, false) => Change::Changed,
            _ => {
                let told = self.told.iter().rfind(|(id, _)| *id == call.id);
                Change::Finished(call, told.map(|(_, changes)| changes.as_slice()))
            }
        }
    }

    fn open(&mut self, id: &str) -> usize {
        if self.calls.len() == REMEMBERED {
            self.calls.pop_front();
        }
        self.total += 1;
        self.calls.push_back(Call::new(id));
        self.calls.len() - 1
    }

    /// One line for each open call, with `mark` in front.
    pub(super) fn open_lines(&self, mark: &str, paint: Paint) -> Vec<String> {
        self.calls
            .iter()
            .filter(|call| call.state == State::Open)
            .map(|call| call.line(mark, paint))
            .collect()
    }

    /// Forgets the open calls and gives their lines: the turn is over, nothing more will be heard of them.
    pub(super) fn abandon(&mut self, mark: &str, paint: Paint) -> Vec<String> {
        let lines = self.open_lines(mark, paint);
        self.calls.retain(|call| call.state != State::Open);
        lines.into_iter().map(|line| format!("{line}  {}", paint.dim("not finished"))).collect()
    }

    /// The call that a permission request is about: what was known of it, and what the request says.
    pub(super) fn asked(&mut self, call: &Value, cwd: Option<&Path>, paint: Paint) -> Call {
        let unknown = || Call::new(call_id(call).unwrap_or("a tool call"));
        let mut asked = self.find(call).cloned().unwrap_or_else(unknown);
        asked.merge(call, cwd, paint);
        asked
    }

    /// A question has shown what the call changes.
    pub(super) fn told(&mut self, call: &Call) {
        if self.told.len() == TOLD {
            self.told.pop_front();
        }
        self.told.push_back((call.id.clone(), call.changes.clone()));
    }

    fn find(&self, update: &Value) -> Option<&Call> {
        let id = call_id(update)?;
        self.calls.iter().rfind(|call| call.id == id)
    }
}

fn call_id(update: &Value) -> Option<&str> {
    let id = update.get("toolCallId")?.as_str()?;
    Some(&id[..id.floor_char_boundary(ID_BYTES)])
}
