//! How the messages of an agent reach a session: at once where the session can take them, else through a queue.
//!
//! The agent task alone offers, the session's task alone takes from the queue. Invariant: messages arrive in order. Nothing
//! is taken at once while anything that was queued is not done with.

use super::{FromAgent, SessionInput};
use acpd_supervisor::queue::{self, Refused, queue};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Batches that wait for a session task that is busy with its log. Full: the agent is not read, so its own pipe
/// fills and slows it.
const SESSION_INPUTS: usize = 4;

/// So many messages in one batch are left to the session task: an agent that says that much at once has more to say, which
/// is read meanwhile.
const FLOOD: usize = 64;

/// A session that takes messages in the task of the agent.
pub(crate) trait DirectRecipient: Send + Sync {
    /// Takes them, or gives them back if that would have to wait.
    fn take(&self, messages: Vec<FromAgent>) -> Result<(), Vec<FromAgent>>;
}

/// Where the messages for one session go.
pub(crate) struct Inbox {
    queue: queue::Sender<SessionInput>,
    shared: Arc<Shared>,
}

struct Shared {
    /// Inputs that were queued and are not done with.
    queued: AtomicUsize,
    session: OnceLock<Weak<dyn DirectRecipient>>,
}

/// Why an input is not taken.
pub(super) enum NotTaken {
    /// The queue is full.
    Full(SessionInput),
    /// The session is gone.
    Gone,
}

/// The session's end of an [`Inbox`].
pub(crate) struct SessionInputs {
    queue: queue::Receiver<SessionInput>,
    shared: Arc<Shared>,
}

impl Inbox {
    /// An inbox and its other end. All is queued until the session takes it [at once](SessionInputs::take_at_once).
    pub(crate) fn new() -> (Arc<Self>, SessionInputs) {
        let (sender, queue) = queue(SESSION_INPUTS);
        let shared = Arc::new(Shared { queued: AtomicUsize::new(0), session: OnceLock::new() });
        let inbox = Self { queue: sender, shared: Arc::clone(&shared) };
        (Arc::new(inbox), SessionInputs { queue, shared })
    }

    /// Hands over an input without waiting.
    pub(super) fn offer(&self, input: SessionInput) -> Result<(), NotTaken> {
        let input = match (input, self.direct()) {
            (SessionInput::Messages(messages), Some(session)) if messages.len() < FLOOD => {
                match session.take(messages) {
                    Ok(()) => return Ok(()),
                    Err(messages) => SessionInput::Messages(messages),
                }
            }
            (input, _) => input,
        };
        self.shared.queued.fetch_add(1, Ordering::AcqRel);
        self.queue.try_send(input).map_err(|refused| {
            self.shared.queued.fetch_sub(1, Ordering::AcqRel);
            match refused {
                Refused::Full(input) => NotTaken::Full(input),
                Refused::Closed(_) => NotTaken::Gone,
            }
        })
    }

    /// Queues the last input, waiting for room.
    pub(super) async fn send_last(&self, input: SessionInput) {
        self.shared.queued.fetch_add(1, Ordering::AcqRel);
        // A session that is gone itself needs no word.
        let _gone = self.queue.send(input).await;
    }

    /// Waits until the queue has room, or the session is gone.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn room(&self) {
        self.queue.room().await;
    }

    /// Whether the session is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// The session, if nothing is queued for it.
    fn direct(&self) -> Option<Arc<dyn DirectRecipient>> {
        let session = self.shared.session.get()?;
        if self.shared.queued.load(Ordering::Acquire) > 0 { None } else { session.upgrade() }
    }
}

impl SessionInputs {
    /// The next input; None when the agent is gone without a word.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn recv(&mut self) -> Option<SessionInput> {
        self.queue.recv().await
    }

    /// The last input was handled.
    pub(crate) fn done(&self) {
        self.shared.queued.fetch_sub(1, Ordering::AcqRel);
    }

    /// How many inputs wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// From now on `session` takes messages at once where it can.
    pub(crate) fn take_at_once(&self, session: Weak<dyn DirectRecipient>) {
        // Said twice it is the same session.
        let _again = self.shared.session.set(session);
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("queued", &self.shared.queued).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    /// A session that takes messages at once unless it is busy, and counts them.
    #[derive(Default)]
    struct Session {
        is_busy: Mutex<bool>,
        taken: Mutex<usize>,
    }

    impl DirectRecipient for Session {
        fn take(&self, messages: Vec<FromAgent>) -> Result<(), Vec<FromAgent>> {
            if *self.is_busy.lock() {
                return Err(messages);
            }
            *self.taken.lock() += messages.len();
            Ok(())
        }
    }

    fn messages(count: usize) -> SessionInput {
        let line = bytes::Bytes::from_static(b"{}");
        let one =
            |_| FromAgent::Notification { line: line.clone(), session: None, update: None, position: 0 };
        SessionInput::Messages((0..count).map(one).collect())
    }

    fn message() -> SessionInput {
        messages(1)
    }

    /// Offers a message; whether it was taken or queued.
    fn offer(inbox: &Inbox) -> bool {
        inbox.offer(message()).is_ok()
    }

    // UP-1: messages come in order; none is taken at once before what was queued is done with
    #[tokio::test]
    async fn what_was_queued_goes_first() {
        let (inbox, mut inputs) = Inbox::new();
        assert!(offer(&inbox));
        let session = Arc::new(Session::default());
        let recipient: Weak<Session> = Arc::downgrade(&session);
        inputs.take_at_once(recipient);
        assert!(offer(&inbox));
        for left in [2, 1] {
            assert_eq!((inputs.len(), *session.taken.lock()), (left, 0));
            assert!(inputs.recv().await.is_some());
            // It is in work still.
            assert!(left > 1 || offer(&inbox));
            inputs.done();
        }
        assert!(inputs.recv().await.is_some());
        inputs.done();
        assert!(offer(&inbox));
        assert_eq!((inputs.len(), *session.taken.lock()), (0, 1));
    }

    // UP-1: while an agent floods, its next lines are read beside the work on the ones before
    #[tokio::test]
    async fn a_flood_is_left_to_the_session_task() {
        let (inbox, inputs) = Inbox::new();
        let session = Arc::new(Session::default());
        let recipient: Weak<Session> = Arc::downgrade(&session);
        inputs.take_at_once(recipient);
        assert!(inbox.offer(messages(FLOOD - 1)).is_ok() && inputs.len() == 0);
        assert!(inbox.offer(messages(FLOOD)).is_ok() && inputs.len() == 1);
        assert!(offer(&inbox) && inputs.len() == 2, "in order");
        assert_eq!(*session.taken.lock(), FLOOD - 1);
    }

    // UP-2: a session that has to wait is sent no more than its queue takes, and then its agent is not read
    #[tokio::test]
    async fn a_session_that_is_behind_stops_its_agent() {
        let (inbox, mut inputs) = Inbox::new();
        let session = Arc::new(Session { is_busy: Mutex::new(true), ..Session::default() });
        let recipient: Weak<Session> = Arc::downgrade(&session);
        inputs.take_at_once(recipient);
        assert_eq!((0..10).filter(|_| offer(&inbox)).count(), SESSION_INPUTS);
        assert!(matches!(inbox.offer(message()), Err(NotTaken::Full(_))));
        *session.is_busy.lock() = false;
        for _ in 0..SESSION_INPUTS {
            assert!(inputs.recv().await.is_some());
            inputs.done();
        }
        assert!(offer(&inbox) && *session.taken.lock() == 1);
        drop(inputs);
        *session.is_busy.lock() = true;
        assert!(matches!(inbox.offer(message()), Err(NotTaken::Gone)) && inbox.is_closed());
    }

    // IN-4, architecture 5: a session sees that its agent's task is gone without a word
    #[tokio::test]
    async fn an_agent_that_is_gone_without_a_word_is_missed() {
        let (inbox, mut inputs) = Inbox::new();
        assert!(offer(&inbox));
        drop(inbox);
        assert!(inputs.recv().await.is_some());
        inputs.done();
        assert!(inputs.recv().await.is_none());
    }
}
