//! What a connection holds of a viewer, and what it sends there.

use super::core;
use super::effects::Body;
use crate::outbox::ClientGone;
use crate::owed::Owing;
use acpd_eventlog::Cursor;
use acpd_host::{OpenQuestion, SessionHandle, queue};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::oneshot;

/// Places for commands: as many as a client may have requests open, so that none of them ever waits for one.
pub(crate) const COMMANDS: usize = 256;

/// An answer to a client, as its viewer takes it.
pub(crate) type Answer = core::Answer<Delivery>;

/// How an answer reaches its client.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) line: Bytes,
    /// Told when it was handed to the transport.
    pub(crate) written: Option<oneshot::Sender<()>>,
    /// It belongs to the connection, not to the session.
    pub(crate) on_connection: bool,
    /// What it answers.
    pub(super) owing: Owing,
    /// The run of the session that was asked, if one was.
    pub(super) of_run: Option<SessionHandle>,
}

impl Answer {
    /// An answer that stands behind `after`.
    pub(crate) fn new(owing: Owing, after: u64, line: Bytes) -> Self {
        let delivery = Delivery { line, written: None, on_connection: false, owing, of_run: None };
        let (before, asked_run, questions) = (None, None, Vec::new());
        Self { after, before, asked_run, questions, body: Body::Given, delivery }
    }

    /// The same, which tells when it was handed to the transport.
    pub(crate) fn told(mut self) -> (Self, oneshot::Receiver<()>) {
        let (written, told) = oneshot::channel();
        self.delivery.written = Some(written);
        (self, told)
    }

    /// The same as the answer of a run: it counts only if what it stands behind was recorded.
    pub(crate) fn of_run(mut self, run: SessionHandle) -> Self {
        self.asked_run = Some(run.began_after());
        self.delivery.of_run = Some(run);
        self
    }

    /// The same, beside the session: the client learns the session's id from it.
    pub(crate) fn on_connection(mut self) -> Self {
        self.delivery.on_connection = true;
        self
    }

    /// The same, in front of the end of a run.
    pub(crate) fn before(mut self, end: Option<u64>) -> Self {
        self.before = end;
        self
    }

    /// The same, with what the client is asked behind it.
    pub(crate) fn asking(mut self, questions: Vec<OpenQuestion>) -> Self {
        self.questions = questions;
        self
    }
}

/// Room for one answer, taken before the request goes out.
pub(crate) struct ReplySlot(queue::Place<Box<Command>>);

impl ReplySlot {
    /// Queues the answer. It is written after the events that precede it and before all others, if it is there
    /// before those can be seen.
    pub(crate) fn fill(self, answer: Answer) {
        self.0.send(Box::new(Command::Answer(answer)));
    }
}

/// Where a client joins a session.
pub(crate) struct Attachment {
    /// The session, if it is live; else its history only is shown.
    pub(crate) live: Option<SessionHandle>,
    /// Where the events come from.
    pub(crate) cursor: Cursor,
    /// Events up to this one are history.
    pub(crate) history_until: u64,
    /// The client has seen what comes before: what it has missed is told as it was, not as history.
    pub(crate) goes_on: bool,
    /// The last event that the client is not shown: the cursor can stand in front of it, for what must be known to show the
    /// others.
    pub(crate) skip_until: u64,
    /// The turn that runs was prompted by this client.
    pub(crate) own_turn: bool,
    /// The answer that attaches the client.
    pub(crate) answer: Answer,
}

/// How a client is shown what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Events up to this one were there when it attached.
    pub(super) history_until: u64,
    /// They are told as they were, not as history.
    pub(super) goes_on: bool,
    /// Events up to this one are not shown.
    pub(super) skip_until: u64,
    /// The turn that runs was prompted by this client.
    pub(super) own_turn: bool,
}

/// What the shell keeps of an attachment.
pub(super) struct Source {
    pub(super) live: Option<SessionHandle>,
    pub(super) cursor: Cursor,
}

impl Attachment {
    pub(super) fn shown(&self) -> Shown {
        let Self { history_until, goes_on, skip_until, own_turn, .. } = *self;
        Shown { history_until, goes_on, skip_until, own_turn }
    }

    /// What the shell keeps, and what the core decides on.
    pub(super) fn split(self) -> (Source, core::Joining<Delivery>) {
        let Self { live, cursor, history_until, goes_on, skip_until, own_turn: _, answer } = self;
        let run = live.as_ref().map(SessionHandle::began_after);
        let from = cursor.position();
        let joining = core::Joining { run, from, history_until, goes_on, skip_until, answer };
        (Source { live, cursor }, joining)
    }
}

/// What a viewer is to do. Sent in a box, as it is big and passed on often.
pub(super) enum Command {
    Answer(Answer),
    Follow(Box<Attachment>),
    /// With the answer to write behind everything before.
    Leave(Answer),
    /// Ask the client again, unless the question was answered.
    Ask(OpenQuestion),
}

/// What a viewer and its connection tell each other beside the commands.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// As many attachments as were over when a run ended, or the client left.
    pub(super) finished: AtomicU64,
    /// The client itself has the session removed: its answer says so.
    pub(super) is_deleting: AtomicBool,
}

/// Sends to a viewer.
#[derive(Clone, Debug)]
pub(crate) struct ViewerHandle {
    commands: queue::Sender<Box<Command>>,
    told: Arc<Told>,
}

impl ViewerHandle {
    /// Whether it still runs.
    pub(crate) fn is_there(&self) -> bool {
        !self.commands.is_closed()
    }

    /// How many attachments it has followed to the end of their run, or left.
    pub(crate) fn finished(&self) -> u64 {
        self.told.finished.load(Ordering::Relaxed)
    }

    /// Whether its client is having the session removed.
    pub(crate) fn deletes(&self, is_deleting: bool) {
        self.told.is_deleting.store(is_deleting, Ordering::Relaxed);
    }

    /// A slot for the answer to a request that is about to go out.
    pub(crate) async fn reply_slot(&self) -> Result<ReplySlot, ClientGone> {
        self.commands.place().await.map(ReplySlot).map_err(|_| ClientGone)
    }

    /// Goes on from another place of the session, or with its next run.
    pub(crate) async fn follow(&self, attachment: Attachment) -> Result<(), ClientGone> {
        self.send(Command::Follow(Box::new(attachment))).await
    }

    /// Asks the client again, in order with what it is told of the question.
    pub(crate) async fn ask(&self, question: OpenQuestion) {
        // A client that is gone is not asked.
        let _gone = self.send(Command::Ask(question)).await;
    }

    /// Whether nothing is queued for it and no place is held.
    pub(crate) fn is_idle(&self) -> bool {
        self.commands.is_idle()
    }

    /// Stops watching until it is to follow again. `line` is written behind what it has written already; the receiver is
    /// told of that. The requests that are still open are answered as soon as there is an answer.
    pub(crate) async fn leave(&self, owing: Owing, line: Bytes) -> Result<oneshot::Receiver<()>, ClientGone> {
        let (answer, told) = Answer::new(owing, 0, line).told();
        self.send(Command::Leave(answer)).await.map(|()| told)
    }

    async fn send(&self, command: Command) -> Result<(), ClientGone> {
        self.commands.send(Box::new(command)).await.map_err(|_| ClientGone)
    }
}

/// The other end: the commands of a viewer in their order.
pub(super) struct Queue {
    commands: queue::Receiver<Box<Command>>,
    /// Those that came while a block was being written, and are no answers.
    deferred: VecDeque<Command>,
}

/// A handle, its queue, and what is told beside that.
pub(super) fn queue() -> (ViewerHandle, Queue, Arc<Told>) {
    let (sender, commands) = queue::queue(COMMANDS);
    let told = Arc::<Told>::default();
    let handle = ViewerHandle { commands: sender, told: Arc::clone(&told) };
    (handle, Queue { commands, deferred: VecDeque::new() }, told)
}

impl Queue {
    /// The next command; None when no handle is left.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Command> {
        match self.deferred.pop_front() {
            Some(command) => Some(command),
            None => self.commands.recv().await.map(|command| *command),
        }
    }

    /// The next command, if it is there and an answer: an answer is queued before what follows it can be seen.
    pub(super) fn next_answer(&mut self) -> Option<Answer> {
        while let Some(command) = self.commands.try_recv() {
            match *command {
                Command::Answer(answer) if self.deferred.is_empty() => return Some(answer),
                other => self.deferred.push_back(other),
            }
        }
        None
    }

    /// Whether nothing is queued and no place is held.
    pub(super) fn is_idle(&self) -> bool {
        self.commands.is_idle()
    }
}
