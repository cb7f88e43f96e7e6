//! A viewer: one client attached to one session.
//!
//! Follows the session's log and writes what ACP clients see of it; holds answers back until the events before
//! them were written. What happened before the client attached is replayed as history, or skipped; a client that
//! attaches again first sees what it was watching, up to where it attaches. Invariant: events in order, each once;
//! `_sandboxagent/session/ended` of the run that is watched, once, last. Owned by its connection: it ends when the
//! connection lets go of it. [`ViewerCore`] decides; this shell has the cursor, the queue and the outbox, and performs.

mod addressing;
mod alike;
mod core;
mod effects;
mod handle;
mod marking;
mod page;
mod terminal_texts;

use crate::capabilities::ClientCapabilities;
use crate::outbox::{ClientGone, Outbox};
use crate::owed::Owing;
use crate::questions::Questions;
use crate::wire_error::wire_error;
use acpd_eventlog::{Block, Cursor, CursorError, Presence};
use acpd_host::{HostError, SessionHandle, ViewerGuard, ViewerInfo};
use acpd_record::{ConnectionId, SessionId};
use bytes::Bytes;
use core::{Input, ViewerCore};
use effects::{Body, Effect, Effects, PIECE};
pub(crate) use handle::{Answer, Attachment, COMMANDS, ViewerHandle};
use handle::{Command, Delivery, Queue, Source, Told, queue};
use page::Page;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How long a client that comes back counts as there when its connection is lost: what it alone was asked goes another way
/// behind that.
const COMES_BACK: Duration = Duration::from_secs(5);

pub(crate) struct Viewer {
    core: ViewerCore<Delivery>,
    live: Option<SessionHandle>,
    info: ViewerInfo,
    comes_back: bool,
    /// Keeps it in the list of a live session's viewers.
    guard: Option<ViewerGuard>,
    /// None when nothing is read.
    cursor: Option<Cursor>,
    /// Where the client attached anew, until it is joined.
    next: Option<Box<Source>>,
    queue: Queue,
    outbox: Outbox,
    told: Arc<Told>,
    /// Cancelled when the client is gone, and the session goes on without it.
    gone: CancellationToken,
    /// Whether the session is there; None when the client knows that it is not.
    presence: Option<Arc<Presence>>,
}

enum Event {
    Log(Result<Option<Block>, CursorError>),
    Command(Option<Command>),
    /// The session was removed.
    Removed,
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
        let info = client.viewer_info(&via);
        let page = Page::new(id, via, client, questions, &attachment.shown());
        let (Source { live, mut cursor }, joining) = attachment.split();
        cursor.share_forms(client.form());
        let guard = live.as_ref().map(|live| live.add_viewer(info.clone()));
        let (handle, queue, told) = queue();
        let viewer = Self {
            core: ViewerCore::new(page, joining),
            live,
            info,
            comes_back: client.comes_back(),
            guard,
            presence: Some(cursor.presence()),
            cursor: Some(cursor),
            next: None,
            queue,
            outbox,
            told,
            gone,
        };
        (handle, viewer)
    }

    /// Runs until the connection lets go of it, or the client is gone. `active` is held as long as something may be written.
    pub(crate) async fn run(mut self: Box<Self>, active: TaskTrackerToken) {
        // Though places for answers may still be held: they are for none now.
        let gone = self.gone.clone();
        // Not `run_until_cancelled`, which holds what it is given twice.
        tokio::select! {
            biased;
            () = gone.cancelled() => {}
            _gone = self.follow() => {}
        }
        drop(active);
        self.keep_seat().await;
    }

    /// A client that was lost may be back in a moment.
    async fn keep_seat(&mut self) {
        self.cursor = None;
        if let (true, Some(_seat), Some(live)) = (self.comes_back, &self.guard, &self.live) {
            let _ended = tokio::time::timeout(COMES_BACK, live.ended()).await;
        }
    }

    async fn follow(&mut self) -> Result<(), ClientGone> {
        Box::pin(self.step(Input::Begin)).await?;
        while !self.core.is_done() {
            let event = tokio::select! {
                block = next(&self.outbox, self.cursor.as_mut()), if self.core.reads() => Event::Log(block),
                command = self.queue.next(), if self.core.takes_commands() => Event::Command(command),
                // Behind all that can be read of it.
                () = Presence::over_if_any(self.presence.as_deref()), if !self.core.reads() => Event::Removed,
            };
            match event {
                // In boxes of their own, here and below: a viewer that waits need not have the room for what it does.
                Event::Log(Ok(Some(block))) => Box::pin(self.write_blocks(block)).await?,
                Event::Log(ended) => Box::pin(self.log_ended(ended)).await?,
                Event::Removed => {
                    self.presence = None;
                    let watches = !self.core.is_left() && !self.told.is_deleting.load(Ordering::Relaxed);
                    Box::pin(self.outbox.removed(self.core.session(), watches)).await?;
                }
                Event::Command(command) => {
                    let input = self.input(command);
                    Box::pin(self.step(input)).await?;
                }
            }
        }
        Ok(())
    }

    /// A command as the core takes it.
    fn input(&mut self, command: Option<Command>) -> Input<'static, Delivery> {
        match command {
            Some(Command::Answer(answer)) => Input::Answer(answer),
            Some(Command::Follow(attachment)) => {
                let (source, joining) = attachment.split();
                self.next = Some(Box::new(source));
                Input::Follow(Box::new(joining))
            }
            Some(Command::Leave(answer)) => Input::Leave(answer),
            Some(Command::Ask(question)) => Input::Ask(question),
            None => {
                let run_goes_on = self.live.as_ref().is_some_and(|live| live.ended_with().is_none());
                Input::Dropped { run_goes_on }
            }
        }
    }

    async fn step(&mut self, input: Input<'_, Delivery>) -> Result<(), ClientGone> {
        let mut effects = Effects::with_room(0);
        self.core.handle(input, self.queue.is_idle(), &mut effects);
        effects.flush();
        self.perform(&mut effects).await
    }

    /// Writes a block and those that have come meanwhile, so that the transport gets their lines together.
    async fn write_blocks(&mut self, block: Block) -> Result<(), ClientGone> {
        let mut effects = Effects::with_room(block.bytes().min(2 * PIECE));
        let (mut next, mut taken) = (Some(block), 0);
        while let Some(block) = next {
            taken += block.bytes();
            self.take_answers(&mut effects);
            if let Some(lines) = self.shared_lines(&block) {
                self.core.handle(Input::Alike { last: block.last(), lines }, false, &mut effects);
                self.perform(&mut effects).await?;
            } else {
                for event in block.events() {
                    self.core.handle(Input::Event(event), false, &mut effects);
                    self.perform(&mut effects).await?;
                }
            }
            self.core.handle(Input::BlockRead, self.queue.is_idle(), &mut effects);
            self.perform(&mut effects).await?;
            let goes_on = taken < PIECE && self.core.reads();
            next = self.cursor.as_mut().filter(|_| goes_on).and_then(Cursor::try_next);
        }
        effects.flush();
        self.perform(&mut effects).await
    }

    /// The lines of a block, made once for all viewers of equal capabilities, if there are others and it is the same for all.
    fn shared_lines(&mut self, block: &Block) -> Option<Bytes> {
        let Self { core, cursor, .. } = self;
        let cursor = cursor.as_ref().filter(|_| core.shows_alike(block.first(), block.last()))?;
        cursor.shared_form(block, || core.alike().write_block(block))?.first().cloned()
    }

    async fn log_ended(&mut self, how: Result<Option<Block>, CursorError>) -> Result<(), ClientGone> {
        if let Err(error) = &how
            && !matches!(error, CursorError::Unknown { .. })
        {
            tracing::error!(session = %self.core.session(), %error, "a viewer cannot read the log");
        }
        self.take_answers(&mut Effects::with_room(0));
        self.step(Input::LogEnded { whole: how.is_ok() }).await
    }

    /// An answer is queued before what follows it can be seen.
    fn take_answers(&mut self, effects: &mut Effects<Delivery>) {
        while self.core.takes_commands()
            && let Some(answer) = self.queue.next_answer()
        {
            self.core.handle(Input::Ahead(answer), false, effects);
        }
    }

    async fn perform(&mut self, effects: &mut Effects<Delivery>) -> Result<(), ClientGone> {
        while let Some(effect) = effects.next_due() {
            match effect {
                Effect::Write(lines) => self.outbox.send(lines).await?,
                Effect::Answer { body, delivery } => self.deliver(body, delivery).await?,
                Effect::Join { opens_cursor } => self.join(opens_cursor),
                Effect::LeaveSeat => self.guard = None,
                Effect::LeaveRun => (self.live, self.guard) = (None, None),
                Effect::DropCursor => self.cursor = None,
                Effect::AwaitEnd => Box::pin(self.await_end(effects)).await,
                Effect::Finished { attachments } => {
                    self.told.finished.store(attachments, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    async fn await_end(&mut self, effects: &mut Effects<Delivery>) {
        if let Some(live) = &self.live {
            let info = live.ended().await;
            self.core.handle(Input::RunEnded(&info), self.queue.is_idle(), effects);
            effects.flush();
        }
    }

    async fn deliver(&mut self, body: Body, delivery: Delivery) -> Result<(), ClientGone> {
        let Delivery { line, written, on_connection, owing, of_run } = delivery;
        let line = match of_run {
            Some(run) if body == Body::EndOfRun => Box::pin(end_of(run, &owing)).await,
            _ => line,
        };
        match on_connection {
            true => self.outbox.connection().answer(&owing, line).await?,
            false => self.outbox.answer(&owing, line).await?,
        }
        // Its receiver may be gone.
        let _told = written.map(|written| written.send(()));
        Ok(())
    }

    fn join(&mut self, opens_cursor: bool) {
        let Some(source) = self.next.take() else { return };
        let Source { live, cursor } = *source;
        self.guard = live.as_ref().map(|live| live.add_viewer(self.info.clone()));
        self.live = live;
        if opens_cursor {
            let form = self.core.alike().client().form();
            self.cursor.insert(cursor).share_forms(form);
        }
    }
}

/// How a run ended, as the answer to a request that it was asked.
async fn end_of(run: SessionHandle, owing: &Owing) -> Bytes {
    let info = run.ended().await;
    wire_error(&HostError::AgentGone { info }).to_line(&owing.id)
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
