//! What a keeper decides about a kept program: who may speak to it, what of its streams goes where, when it has to end.
//!
//! A state machine without IO or clock: `now` comes in. The shell (`kept.rs`) performs what it decides. There is one
//! controller at a time, or none; the newest with the right key is the one. Before the word to keep the program and after
//! the word to stop it, a lost controller means the ladder; otherwise a clock runs, and the next one finds everything that
//! the last one had not settled. Not here: processes, and the ladder itself.

use super::input::Input;
use super::marks::Marks;
use super::output::{Impossible, Output};
use super::protocol::{Keep, Mark, Progress, Put, Why};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;
use tokio_util::bytes::Bytes;

/// What is retained before it is known how much may be: more than a controller leaves uncommitted at a start.
const BEFORE_KEEP: usize = 64 << 20;

pub(super) struct Machine {
    pub(super) output: Output,
    pub(super) input: Input,
    marks: Marks,
    keep: Option<Keep>,
    /// How many controllers there were before this one.
    lease: u64,
    control: Control,
    /// The ladder was asked for.
    is_stopping: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    Attached,
    Detached {
        since: Instant,
        until: Instant,
    },
    /// The clock is over, or there was none.
    GivenUp {
        since: Instant,
    },
}

/// What a lost controller means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The program is to end.
    Ladder,
    /// The next controller has some time.
    Detached,
}

impl Machine {
    /// With its first controller.
    pub(super) fn new() -> Self {
        Self {
            output: Output::new(BEFORE_KEEP),
            input: Input::default(),
            marks: Marks::default(),
            keep: None,
            lease: 0,
            control: Control::Attached,
            is_stopping: false,
        }
    }

    /// The controller has read and committed.
    pub(super) fn progress(&mut self, Progress { read, committed }: Progress) -> Result<(), Impossible> {
        self.output.told(read, committed)
    }

    /// A frame for stdin, of `cost` bytes in all, has come whole.
    pub(super) fn write(&mut self, mark: Option<Mark>, bytes: Bytes, cost: usize) -> Result<(), Impossible> {
        let has_room = mark.is_none_or(|(key, value)| self.marks.put(key, Some(value)));
        if has_room && self.input.accept(bytes, cost) { Ok(()) } else { Err(Impossible) }
    }

    /// A mark by itself.
    pub(super) fn put(&mut self, Put { key, value }: Put, cost: usize) -> Result<(), Impossible> {
        let has_room = self.marks.put(key, value) && self.input.accept(Bytes::new(), cost);
        if has_room { Ok(()) } else { Err(Impossible) }
    }

    /// From now on a lost controller is waited for. Said again, it changes for how long, and how much is retained meanwhile, and
    /// nothing else; true the first time.
    pub(super) fn keep(&mut self, keep: Keep) -> bool {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        self.output.bound_to(size(keep.detached_bytes), size(keep.line_bytes));
        match &mut self.keep {
            Some(before) => {
                before.keep_ms = keep.keep_ms;
                false
            }
            none => {
                *none = Some(keep);
                true
            }
        }
    }

    /// What was asked for could not be had.
    pub(super) fn not_kept(&mut self) {
        self.keep = None;
    }

    pub(super) fn kept(&self) -> Option<&Keep> {
        self.keep.as_ref()
    }

    /// The ladder has begun.
    pub(super) fn stopping(&mut self) {
        self.is_stopping = true;
    }

    pub(super) fn is_attached(&self) -> bool {
        self.control == Control::Attached
    }

    /// The controller is gone.
    pub(super) fn lost(&mut self, now: Instant) -> Loss {
        self.output.detach();
        match &self.keep {
            Some(keep) if !self.is_stopping => {
                let until = now + Duration::from_millis(keep.keep_ms);
                self.control = Control::Detached { since: now, until };
                Loss::Detached
            }
            _ => {
                self.control = Control::GivenUp { since: now };
                Loss::Ladder
            }
        }
    }

    /// When [`tick`](Self::tick) is due.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.control {
            Control::Detached { until, .. } => Some(until),
            Control::Attached | Control::GivenUp { .. } => None,
        }
    }

    /// Whether no controller has come in time: the program is to end.
    pub(super) fn tick(&mut self, now: Instant) -> bool {
        match self.control {
            Control::Detached { since, until } if now >= until => {
                self.control = Control::GivenUp { since };
                true
            }
            _ => false,
        }
    }

    /// Someone wants to be the controller.
    pub(super) fn may_attach(&self, key: &str) -> Result<(), Why> {
        let is_right = |keep: &Keep| bool::from(keep.key.as_bytes().ct_eq(key.as_bytes()));
        if self.keep.as_ref().is_some_and(is_right) { Ok(()) } else { Err(Why::Key) }
    }

    /// The newest controller is the one. Gives for how long there was none.
    pub(super) fn attach(&mut self, now: Instant) -> Duration {
        let detached = self.detached_for(now);
        self.lease += 1;
        self.control = Control::Attached;
        self.output.attach();
        self.input.attach();
        detached
    }

    /// For how long there is no controller.
    pub(super) fn detached_for(&self, now: Instant) -> Duration {
        match self.control {
            Control::Attached => Duration::ZERO,
            Control::Detached { since, .. } | Control::GivenUp { since } => {
                now.saturating_duration_since(since)
            }
        }
    }

    pub(super) fn lease(&self) -> u64 {
        self.lease
    }

    pub(super) fn marks(&self) -> &std::collections::BTreeMap<String, String> {
        self.marks.all()
    }
}

#[cfg(test)]
mod tests;
