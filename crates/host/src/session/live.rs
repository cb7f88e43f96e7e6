//! A live session: its core and what performs for it, behind one lock.
//!
//! Connections, the agent's task and services let the core decide in their own tasks, one at a time, and what it decides is
//! performed there: no other task has to wake up for a prompt or an update. What has to be waited for (time, replays, the
//! end) is left to the session task.

use super::core::{Input, SessionCore};
use super::parts::RunParts;
use super::performer::Performer;
use crate::agent::{DirectRecipient, FromAgent, SessionInputs};
use crate::metrics::WaitingCommand;
use acpd_eventlog::QueueRoom;
use acpd_supervisor::panic_message;
use parking_lot::{Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tracing::Span;

/// How long a reader waits for whoever decides: that takes longer only while a disk stands still.
const SOON: Duration = Duration::from_millis(2);

/// A session that has a run.
pub(crate) struct LiveSession {
    /// None when the run has ended, or was lost to a panic.
    performer: Mutex<Option<Box<Performer>>>,
    room: QueueRoom,
    /// What is decided and performed belongs to, in whatever task that is.
    span: Span,
    /// The session task has something to do.
    changed: Notify,
    /// No handle is left.
    abandoned: AtomicBool,
}

impl LiveSession {
    /// A run begins. Messages of its agent go through the session task while it `sifts` replays from news.
    pub(crate) fn begin(
        core: SessionCore,
        parts: RunParts,
        room: QueueRoom,
        sifts: bool,
        inputs: &SessionInputs,
    ) -> Arc<Self> {
        let live = Arc::new_cyclic(|live: &Weak<Self>| {
            let span = parts.scope.span().clone();
            let performer = Performer::new(core, parts, sifts, Weak::clone(live));
            Self {
                performer: Mutex::new(Some(Box::new(performer))),
                room,
                span,
                changed: Notify::new(),
                abandoned: AtomicBool::new(false),
            }
        });
        let recipient: Weak<Self> = Arc::downgrade(&live);
        inputs.take_at_once(recipient);
        live
    }

    /// Waits until what is decided finds room in the log's queue. For those that can wait, before they let the core
    /// decide.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn room(&self) {
        self.room.wait().await;
    }

    /// The same for a client's command, which counts as waiting.
    pub(crate) async fn room_for_command(&self) {
        if !self.room.is_free() {
            let _waiting = WaitingCommand::new();
            self.room.wait().await;
        }
    }

    /// Waits until no thread stands in a write of it: whoever takes its lock then would stand still as well. Room is not waited
    /// for.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn idle(&self) {
        if !self.room.is_idle() {
            // In a box, as all that is rarely waited for.
            Box::pin(self.room.idle()).await;
        }
    }

    /// Waits until all that was decided before is committed, or cannot be.
    pub(crate) async fn flushed(&self) {
        self.room.flushed().await;
    }

    /// Gives access to a run that has not ended; nothing may be awaited for it. A panic ends the run: a decision that was
    /// half made cannot be gone on with.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Performer) -> T) -> Option<T> {
        self.act_on(self.state(), act)
    }

    /// The same for a reader that goes without: None also while a disk stands still in a write of it.
    pub(crate) fn with_soon<T>(&self, act: impl FnOnce(&mut Performer) -> T) -> Option<T> {
        self.act_on(self.performer.try_lock_for(SOON)?, act)
    }

    fn act_on<T>(
        &self,
        mut state: MutexGuard<'_, Option<Box<Performer>>>,
        act: impl FnOnce(&mut Performer) -> T,
    ) -> Option<T> {
        let _in_span = self.span.enter();
        let performer = state.as_mut()?;
        let acted = catch_unwind(AssertUnwindSafe(|| {
            let result = act(performer);
            (result, performer.needs_task())
        }));
        match acted {
            Ok((result, needs_task)) => {
                if needs_task {
                    self.changed.notify_one();
                }
                Some(result)
            }
            Err(panic) => {
                let lost = state.take();
                drop(state);
                tracing::error!(panic = panic_message(&*panic), "a session was lost to a panic");
                self.changed.notify_one();
                drop(lost);
                None
            }
        }
    }

    /// Takes the run out at its end.
    pub(super) fn end(&self) -> Option<Box<Performer>> {
        self.state().take()
    }

    /// Waits until the session task has something to do.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// No handle is left: the registry and every client dropped theirs.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// Whether no handle is left; true once.
    pub(super) fn was_abandoned(&self) -> bool {
        self.abandoned.swap(false, Ordering::AcqRel)
    }

    fn state(&self) -> MutexGuard<'_, Option<Box<Performer>>> {
        self.performer.lock()
    }
}

impl DirectRecipient for LiveSession {
    fn take(&self, messages: Vec<FromAgent>) -> Result<(), Vec<FromAgent>> {
        if !self.room.is_free() {
            return Err(messages);
        }
        let taken = self.with(|performer| {
            if performer.sifts() {
                return Err(messages);
            }
            performer.handle(messages.into_iter().map(Input::Agent));
            Ok(())
        });
        // To a run that is over nothing is said any more.
        taken.unwrap_or(Ok(()))
    }
}

impl std::fmt::Debug for LiveSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveSession").finish_non_exhaustive()
    }
}
