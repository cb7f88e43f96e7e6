//! A viewer: one client attached to one session.
//!
//! Follows the session's log and writes what ACP clients see of it; holds answers back until the events before
//! them were written. What happened before the client attached is replayed as history, or skipped; a client that
//! attaches again first sees what it was watching, up to where it attaches. Invariant: events in order, each once;
//! `_sandboxagent/session/ended` of the run that is watched, once, last. Owned by its connection: it ends when the
//! connection lets go of it.

mod page;

use crate::capabilities::ClientCapabilities;
use crate::outbox::{ClientGone, Outbox};
use crate::questions::Questions;
use crate::wire_error::wire_error;
use acpd_eventlog::{Block, Cursor, CursorError};
use acpd_host::{EventKind, HostError, OpenQuestion, SessionHandle, ViewerGuard, ViewerInfo};
use acpd_record::{ConnectionId, SessionId};
use acpd_wire::OwnedId;
use bytes::{Bytes, BytesMut};
use page::Page;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Places for commands: as many as a client may have requests open, so that nobody ever waits for one.
const COMMANDS: usize = crate::connection::OPEN_REQUESTS;
/// Bytes after which written events are handed to the transport.
const PIECE: usize = 256 * 1024;

/// An answer and the last event that precedes it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) after: u64,
    /// The end that it stands in front of, if it does: it is not written before that can be read.
    pub(crate) before: Option<u64>,
    pub(crate) line: Bytes,
    /// Told when it was handed to the transport.
    pub(crate) written: Option<oneshot::Sender<()>>,
    /// What the client is asked behind it.
    pub(crate) questions: Vec<OpenQuestion>,
    /// It belongs to the connection, not to the session.
    pub(crate) on_connection: bool,
    /// What it answers, if that was asked of a run of the session: it counts only if what it stands behind was recorded.
    pub(crate) of_run: Option<Box<OfRun>>,
}

/// A request that a run of the session was to answer.
#[derive(Debug)]
pub(crate) struct OfRun {
    pub(crate) id: OwnedId,
    pub(crate) run: SessionHandle,
}

impl Answer {
    /// An answer that stands behind `after`.
    pub(crate) fn new(after: u64, line: Bytes) -> Self {
        let (written, questions) = (None, Vec::new());
        Self { after, before: None, line, written, questions, on_connection: false, of_run: None }
    }

    /// And somebody wants to know when it was handed to the transport.
    pub(crate) fn told(after: u64, line: Bytes) -> (Self, oneshot::Receiver<()>) {
        let (written, told) = oneshot::channel();
        (Self { written: Some(written), ..Self::new(after, line) }, told)
    }
}

/// Room for one answer, taken before the request goes out.
pub(crate) struct ReplySlot(mpsc::OwnedPermit<Box<Command>>);

impl ReplySlot {
    /// Queues the answer. It is written after the events that precede it and before all others, if it is there
    /// before those can be seen.
    pub(crate) fn fill(self, answer: Answer) {
        drop(self.0.send(Box::new(Command::Answer(answer))));
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
    /// The answer that attaches the client.
    pub(crate) answer: Answer,
}

/// What a viewer is told. Sent in a box: its queue has room for many from the start.
pub(crate) enum Command {
    Answer(Answer),
    Follow(Box<Attachment>),
    /// With the answer to write behind everything before.
    Leave(Answer),
    /// Ask the client again, unless somebody has answered.
    Ask(OpenQuestion),
}

/// Sends to a viewer.
#[derive(Clone, Debug)]
pub(crate) struct ViewerHandle {
    commands: mpsc::Sender<Box<Command>>,
    finished: Arc<AtomicU64>,
}

impl ViewerHandle {
    /// Whether it still runs.
    pub(crate) fn is_there(&self) -> bool {
        !self.commands.is_closed()
    }

    /// How many attachments it has followed to the end of their run, or left.
    pub(crate) fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }

    /// A slot for the answer to a request that is about to go out.
    pub(crate) async fn reply_slot(&self) -> Result<ReplySlot, ClientGone> {
        self.commands.clone().reserve_owned().await.map(ReplySlot).map_err(|_| ClientGone)
    }

    /// Goes on from another place of the session, or with its next run.
    pub(crate) async fn follow(&self, attachment: Attachment) -> Result<(), ClientGone> {
        self.commands.send(Box::new(Command::Follow(Box::new(attachment)))).await.map_err(|_| ClientGone)
    }

    /// Asks the client again, in order with what it is told of the question.
    pub(crate) async fn ask(&self, question: OpenQuestion) {
        // A client that is gone is not asked.
        let _gone = self.commands.send(Box::new(Command::Ask(question))).await;
    }

    /// Whether nothing is queued for it and nobody holds a place.
    pub(crate) fn is_idle(&self) -> bool {
        self.commands.capacity() == self.commands.max_capacity()
    }

    /// Stops watching until it is told to follow again. `line` is written behind what it has written already; the
    /// receiver is told of that. The requests that are still open are answered as soon as there is an answer.
    pub(crate) async fn leave(&self, line: Bytes) -> Result<oneshot::Receiver<()>, ClientGone> {
        let (answer, told) = Answer::told(0, line);
        self.commands.send(Box::new(Command::Leave(answer))).await.map_err(|_| ClientGone)?;
        Ok(told)
    }
}

pub(crate) struct Viewer {
    live: Option<SessionHandle>,
    info: ViewerInfo,
    /// Keeps it in the list of a live session's viewers.
    guard: Option<ViewerGuard>,
    /// None when everything was read, and when the client has left.
    cursor: Option<Cursor>,
    /// The last event that was read when the run ended.
    ended_at: u64,
    /// The last end of a run that was read, told or as history.
    last_end: u64,
    /// The run that was followed is over, and its log was read as far as it goes.
    is_over: bool,
    /// The last event that was written before the client left. What is read from then on is not written: it only tells
    /// which answers may be.
    left_at: Option<u64>,
    outbox: Outbox,
    page: Page,
    commands: mpsc::Receiver<Box<Command>>,
    /// Cancelled when the client is gone, and the session goes on without it.
    gone: CancellationToken,
    /// Attachments so far.
    attachments: u64,
    /// As many of them as were over when a run ended, or the client left.
    finished: Arc<AtomicU64>,
    /// What came while a block was being written, and is not an answer.
    deferred: VecDeque<Command>,
    /// Held back, in the order of the events that they stand behind.
    waiting: VecDeque<Answer>,
    /// Where the client goes on once it has seen what comes before; no command is taken until then.
    next: Option<Box<Attachment>>,
}

enum Event {
    Log(Result<Option<Block>, CursorError>),
    Command(Option<Command>),
}

impl Viewer {
    /// A viewer of the session `id` for the connection `via`.
    pub(crate) fn new(
        id: &SessionId,
        via: ConnectionId,
        attachment: Attachment,
        outbox: Outbox,
        client: ClientCapabilities,
        questions: Questions,
        gone: CancellationToken,
    ) -> (ViewerHandle, Self) {
        let (sender, commands) = mpsc::channel(COMMANDS);
        let info = client.viewer_info(&via);
        let page = Page::new(id, via, client, questions, attachment.history_until);
        let Attachment { live, cursor, answer, .. } = attachment;
        let guard = live.as_ref().map(|live| live.add_viewer(info.clone()));
        let (cursor, waiting) = (Some(cursor), VecDeque::from([answer]));
        let (deferred, finished) = (VecDeque::new(), Arc::new(AtomicU64::new(0)));
        let handle = ViewerHandle { commands: sender, finished: Arc::clone(&finished) };
        let viewer = Self {
            live,
            info,
            guard,
            cursor,
            ended_at: 0,
            last_end: 0,
            is_over: false,
            left_at: None,
            outbox,
            page,
            commands,
            gone,
            attachments: 1,
            finished,
            deferred,
            waiting,
            next: None,
        };
        (handle, viewer)
    }

    /// Runs until the connection lets go of it, or the client is gone.
    pub(crate) async fn run(mut self: Box<Self>) {
        // Though others may still hold places for answers: they are nobody's now.
        let gone = self.gone.clone();
        // Not `run_until_cancelled`, which holds what it is given twice.
        tokio::select! {
            biased;
            () = gone.cancelled() => {}
            _gone = self.follow() => {}
        }
    }

    async fn follow(&mut self) -> Result<(), ClientGone> {
        let mut open = true;
        self.end_history();
        self.release().await?;
        while open || self.cursor.is_some() {
            let event = tokio::select! {
                block = next(&self.outbox, self.cursor.as_mut()), if self.cursor.is_some() => Event::Log(block),
                command = next_command(&mut self.deferred, &mut self.commands), if open && self.next.is_none() => Event::Command(command),
            };
            match event {
                Event::Log(Ok(Some(block))) => self.write_block(&block).await?,
                // In a box of its own: a viewer that waits need not have the room for the end.
                Event::Log(ended) => Box::pin(self.log_ended(ended)).await?,
                Event::Command(Some(Command::Answer(answer))) => self.hold(answer),
                Event::Command(Some(Command::Follow(attachment))) => self.next = Some(attachment),
                Event::Command(Some(Command::Leave(answer))) => self.rest(answer),
                Event::Command(Some(Command::Ask(question))) => self.ask(&[question]).await?,
                Event::Command(None) => {
                    open = false;
                    // The connection lets go. A session that goes on does so without this viewer.
                    let goes_on = self.live.as_ref().is_some_and(|live| live.ended_with().is_none());
                    if goes_on || self.left_at.is_some() {
                        return Ok(());
                    }
                }
            }
            self.release().await?;
            // First what there is, then what comes next: when nothing is left to read, that can begin at once.
            self.end_history();
            self.go_on();
            self.end_history();
            self.end_rest();
            self.release().await?;
        }
        Ok(())
    }

    /// What is only read ends with its history: what another process adds to it is not watched here.
    fn end_history(&mut self) {
        let until = self.page.history_until();
        if self.live.is_none()
            && self.left_at.is_none()
            && self.cursor.as_ref().is_some_and(|cursor| cursor.position() >= until)
        {
            self.cursor = None;
            self.ended_at = until;
            self.finished.store(self.attachments, Ordering::Relaxed);
        }
    }

    /// A client that has left is owed nothing any more, so nothing need be read.
    fn end_rest(&mut self) {
        let is_idle = self.commands.capacity() == self.commands.max_capacity() && self.waiting.is_empty();
        if self.left_at.is_some() && is_idle && self.next.is_none() {
            self.cursor = None;
        }
    }

    /// The client watches no more. An answer that it is still owed waits until what precedes it is in the log.
    fn rest(&mut self, mut answer: Answer) {
        self.live = None;
        self.guard = None;
        let mut line = BytesMut::new();
        self.page.write_left(&mut line);
        line.extend_from_slice(&answer.line);
        answer.line = line.freeze();
        let written = self.cursor.as_ref().map_or(self.ended_at, Cursor::position);
        self.left_at.get_or_insert(written);
        self.waiting.push_front(answer);
        self.finished.store(self.attachments, Ordering::Relaxed);
    }

    /// Keeps an answer until what it stands behind was written.
    fn hold(&mut self, answer: Answer) {
        let place = self.waiting.partition_point(|waiting| waiting.after <= answer.after);
        self.waiting.insert(place, answer);
    }

    /// Goes on from where the client attached anew, once everything up to there was written.
    fn go_on(&mut self) {
        let reached = self.cursor.as_ref().map_or(u64::MAX, Cursor::position);
        let replayed = self.page.history_until();
        let Some(next) = self.next.take_if(|next| next.history_until.max(replayed) <= reached) else {
            return;
        };
        let Attachment { live, cursor, history_until, mut answer } = *next;
        self.attachments += 1;
        // More of it may have been written already; that is history then, and not written again.
        let left = self.left_at.take();
        let written = || self.cursor.as_ref().map_or(self.ended_at, Cursor::position);
        let seen = left.unwrap_or_else(written).max(history_until);
        answer.after = answer.after.max(seen);
        self.guard = live.as_ref().map(|live| live.add_viewer(self.info.clone()));
        self.live = live;
        let replays = cursor.position() < history_until;
        if replays || left.is_some() || self.cursor.is_none() {
            self.page.restart(seen, if replays { 0 } else { seen });
            self.cursor = Some(cursor);
            self.is_over = false;
        }
        self.hold(answer);
    }

    /// The run is over, or it cannot be read any more; either way the client learns how it ended.
    async fn log_ended(&mut self, how: Result<Option<Block>, CursorError>) -> Result<(), ClientGone> {
        self.is_over = how.is_ok();
        if let Err(error) = how {
            tracing::error!(%error, "a viewer cannot read the log");
        }
        self.ended_at = self.cursor.take().map_or(0, |cursor| cursor.position());
        self.guard = None;
        self.take_answers();
        // Only a log that could not be written, or read, has no end.
        if let Some(live) = self.live.as_ref().filter(|live| self.last_end <= live.began_after()) {
            let info = live.ended().await;
            self.is_over = true;
            self.replace_unrecorded().await;
            self.release_up_to(self.ended_at, u64::MAX).await?;
            let mut line = BytesMut::new();
            self.page.write_ended(&info, &mut line);
            self.outbox.send(line.freeze()).await?;
        }
        self.finished.store(self.attachments, Ordering::Relaxed);
        Ok(())
    }

    /// An answer is queued before what follows it can be seen.
    fn take_answers(&mut self) {
        while self.next.is_none()
            && let Ok(command) = self.commands.try_recv()
        {
            match *command {
                Command::Answer(answer) if self.deferred.is_empty() => self.hold(answer),
                other => self.deferred.push_back(other),
            }
        }
    }

    async fn write_block(&mut self, block: &Block) -> Result<(), ClientGone> {
        let mut out = BytesMut::with_capacity(block.bytes().min(2 * PIECE));
        self.take_answers();
        let watches = self.live.is_some() || self.left_at.is_some();
        let last = if watches { u64::MAX } else { self.page.history_until() };
        for event in block.events().filter(|event| event.seq <= last) {
            if EventKind::from_number(event.kind) == Some(EventKind::Ended) {
                self.last_end = self.last_end.max(event.seq);
                self.replace_unrecorded().await;
            }
            if self.waiting.front().is_some_and(|answer| answer.after < event.seq) {
                if !out.is_empty() {
                    self.outbox.send(out.split().freeze()).await?;
                }
                self.release_up_to(event.seq - 1, event.seq).await?;
            }
            if self.left_at.is_none() {
                self.page.write(&event, &mut out);
            }
            if out.len() >= PIECE {
                self.outbox.send(out.split().freeze()).await?;
            }
        }
        if !out.is_empty() {
            self.outbox.send(out.freeze()).await?;
        }
        Ok(())
    }

    /// Puts questions to the client that were open a moment ago.
    async fn ask(&mut self, questions: &[OpenQuestion]) -> Result<(), ClientGone> {
        let mut asked = BytesMut::new();
        if self.left_at.is_none() {
            self.page.write_open(questions, &mut asked);
        }
        match asked.is_empty() {
            true => Ok(()),
            false => self.outbox.send(asked.freeze()).await,
        }
    }

    /// The number that an answer's run stopped short of, if what the answer stands behind was not recorded: that of its
    /// end, or the first that was given to nothing.
    fn unrecorded(&self, answer: &Answer) -> Option<u64> {
        let began_after = answer.of_run.as_ref()?.run.began_after();
        let first = match self.last_end {
            end if end > began_after => end,
            _ if self.is_over => self.ended_at + 1,
            _ => return None,
        };
        (first <= answer.after).then_some(first)
    }

    /// An answer whose events never came into the log would tell of what cannot be seen: how the run ended is the answer
    /// instead, in front of that end (PR-11, contract 7.3).
    async fn replace_unrecorded(&mut self) {
        let mut is_replaced = false;
        for at in 0..self.waiting.len() {
            let Some(first) = self.unrecorded(&self.waiting[at]) else { continue };
            let answer = &mut self.waiting[at];
            if let Some(of_run) = answer.of_run.take() {
                let info = of_run.run.ended().await;
                answer.line = wire_error(&HostError::AgentGone { info }).to_line(&of_run.id);
                (answer.after, answer.before) = (first - 1, None);
                is_replaced = true;
            }
        }
        if is_replaced {
            // They stand in front of the end now; the others stay in their order.
            self.waiting.make_contiguous().sort_by_key(|answer| answer.after);
        }
    }

    /// Writes the answers whose events were written.
    async fn release(&mut self) -> Result<(), ClientGone> {
        self.replace_unrecorded().await;
        let reached = self.cursor.as_ref().map_or(u64::MAX, Cursor::position);
        self.release_up_to(reached, reached).await
    }

    /// Writes the answers that stand behind what was `written`, but none whose end cannot be read yet.
    async fn release_up_to(&mut self, written: u64, readable: u64) -> Result<(), ClientGone> {
        let is_due =
            |answer: &Answer| answer.after <= written && answer.before.is_none_or(|end| end <= readable);
        while self.waiting.front().is_some_and(is_due) {
            if let Some(answer) = self.waiting.pop_front() {
                match answer.on_connection {
                    true => self.outbox.connection().send(answer.line).await?,
                    false => self.outbox.send(answer.line).await?,
                }
                self.ask(&answer.questions).await?;
                // Nobody may be waiting for that.
                let _told = answer.written.map(|written| written.send(()));
            }
        }
        Ok(())
    }
}

/// # Cancel safety
/// As [`Cursor::next`]: nothing is lost when the future is dropped.
async fn next(outbox: &Outbox, cursor: Option<&mut Cursor>) -> Result<Option<Block>, CursorError> {
    // The log keeps for nothing what a client does not read.
    outbox.is_read().await;
    match cursor {
        Some(cursor) => cursor.next().await,
        None => Ok(None),
    }
}

/// # Cancel safety
/// Nothing is lost when the future is dropped.
async fn next_command(
    deferred: &mut VecDeque<Command>,
    commands: &mut mpsc::Receiver<Box<Command>>,
) -> Option<Command> {
    match deferred.pop_front() {
        Some(command) => Some(command),
        None => commands.recv().await.map(|command| *command),
    }
}
