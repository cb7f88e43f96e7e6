//! The terminal task: one command, from its start to its release.
//!
//! Owner of the process and of its output. One loop picks an event and handles it; nothing is awaited in between
//! but the next event. Output is read always, so the command is never held up by its readers.

use crate::beginning::Ends;
use crate::decoder::Decoder;
use crate::event::TerminalEvent;
use crate::feed::{Feed, Piece};
use crate::handle::Question;
use crate::kept::{Kept, Place};
use crate::life::{Life, LifeInput, LifeOutput, TerminalState};
use crate::metrics::CommandRuns;
use crate::report::{TerminalReport, TerminalSnapshot};
use crate::settings::OutputLimits;
use crate::spec::TerminalId;
use crate::tail::Tail;
use acpd_supervisor::{ExitReport, ExitStatus, Process};
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::bytes::BytesMut;
use tokio_util::sync::PollSender;

/// Bytes taken in one read: what a pipe holds.
const READ: usize = 64 * 1024;

/// How long a host that shuts down waits for a feed's reader to take what is left, after the command is gone; and how long
/// those that wait for the end of a command wait for that reader.
const FAREWELL: Duration = Duration::from_secs(1);

pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// A terminal whose command runs or ran.
pub(crate) struct Running {
    ends: Ends,
    process: Process,
    /// Its output has not ended yet.
    reading: bool,
    exit: Option<Arc<ExitReport>>,
    /// Until its exit it counts as running.
    counted: Option<CommandRuns>,
    life: Life,
    limits: OutputLimits,
    /// Bytes that come first and were read by the host before; only where they end is known.
    known: u64,
    decoder: Decoder,
    tail: Tail,
    /// None without a reader, or after its last event.
    feed: Option<OpenFeed>,
    /// How it ended, until that is told: behind the feed's last event, so that those who wait for the end find all of the
    /// output with the feed's reader. At this time it is told anyway.
    untold: Option<(TerminalReport, Instant)>,
    asked_to_kill: bool,
    is_shutdown: bool,
    /// Until when the feed's reader has to take what is left.
    farewell: Option<Instant>,
    /// If it outlives this host.
    kept: Option<Kept>,
    /// Another host has it.
    is_left: bool,
}

/// What a terminal begins with.
pub(crate) struct Begin {
    /// How long its command may run.
    pub(crate) time: Option<Duration>,
    pub(crate) limits: OutputLimits,
    pub(crate) known: u64,
    pub(crate) tail: Tail,
    pub(crate) feed: Option<OpenFeed>,
    pub(crate) kept: Option<Kept>,
}

pub(crate) struct OpenFeed {
    pieces: Feed,
    /// Told after the last piece.
    last: Option<TerminalEvent>,
    sender: PollSender<TerminalEvent>,
}

impl OpenFeed {
    pub(crate) fn new(pieces: Feed, sender: mpsc::Sender<TerminalEvent>) -> Self {
        Self { pieces, last: None, sender: PollSender::new(sender) }
    }

    /// From when on there is something to tell; the last event follows the last piece at once.
    fn due(&self, now: Instant) -> Option<Instant> {
        self.pieces.due().or_else(|| self.last.is_some().then_some(now))
    }

    /// What is to be told next.
    fn take(&mut self, terminal: &TerminalId, now: Instant) -> Option<TerminalEvent> {
        if self.pieces.due().is_none() {
            return self.last.take();
        }
        let Piece { dropped, text } = self.pieces.take(now);
        Some(TerminalEvent::Output { terminal: terminal.clone(), dropped, text })
    }

    /// Tells what is due as long as there is room. A reader that keeps up would miss something if it depended on
    /// which of two events comes first, more output or its room.
    fn send_due(&mut self, terminal: &TerminalId, now: Instant) {
        while self.pieces.due().is_some_and(|due| due <= now) {
            let Some(sender) = self.sender.get_ref().cloned() else { return };
            let Ok(room) = sender.try_reserve() else { return };
            let Some(event) = self.take(terminal, now) else { return };
            room.send(event);
        }
    }
}

enum Event {
    Question(Question),
    Kill,
    /// Asked for, or no handle is left.
    Release,
    /// The host ends.
    Shutdown,
    Read(io::Result<usize>),
    Exited(Arc<ExitReport>),
    /// Another host has taken the command over.
    Left,
    /// The feed's reader takes another event, or is gone.
    FeedReady {
        is_open: bool,
    },
    /// A deadline has passed.
    Tick,
}

impl Running {
    pub(crate) fn new(ends: Ends, process: Process, begin: Begin) -> Self {
        let Begin { time, limits, known, tail, feed, kept } = begin;
        Self {
            ends,
            process,
            reading: true,
            exit: None,
            counted: Some(CommandRuns::new()),
            life: Life::new(time.and_then(|time| now().checked_add(time))),
            limits,
            known,
            decoder: Decoder::default(),
            tail,
            feed,
            untold: None,
            asked_to_kill: false,
            is_shutdown: false,
            farewell: None,
            kept,
            is_left: false,
        }
    }

    pub(crate) async fn serve(mut self) {
        let mut buffer = BytesMut::with_capacity(READ);
        while !self.is_done() {
            let event = self.next_event(&mut buffer).await;
            self.handle(event, &mut buffer);
            if self.is_shutdown && self.life.has_ended() {
                self.farewell.get_or_insert_with(|| now() + FAREWELL);
            }
            let is_due = |due: Instant| self.feed.is_none() || due <= now();
            if let Some((report, _)) = self.untold.take_if(|(_, due)| is_due(*due)) {
                self.ends.publish.send_replace(Some(report));
            }
        }
        if let Some(kept) = self.kept.filter(|_| !self.is_left) {
            (kept.note)(&self.ends.id, None);
        }
    }

    fn is_done(&self) -> bool {
        self.is_left || (self.life.has_ended() && self.life.is_released() && self.feed.is_none())
    }

    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    async fn next_event(&mut self, buffer: &mut BytesMut) -> Event {
        let now = now();
        let released = self.life.is_released();
        let told_at = self.feed.as_ref().and_then(|feed| feed.due(now));
        let is_told = told_at.is_some_and(|due| due <= now);
        let untold = self.untold.as_ref().map(|(_, due)| *due);
        let ticks = [self.life.deadline(), told_at.filter(|_| !is_told), self.farewell, untold];
        let tick = ticks.into_iter().flatten().min();
        tokio::select! {
            question = self.ends.questions.recv(), if !released => question.map_or(Event::Release, Event::Question),
            () = self.ends.kill.cancelled(), if !self.asked_to_kill => Event::Kill,
            () = self.ends.release.cancelled(), if !released => Event::Release,
            () = self.ends.shutdown.cancelled(), if !self.is_shutdown => Event::Shutdown,
            read = self.process.stdout.read_buf(buffer), if self.reading => Event::Read(read),
            exit = self.process.handle.exited(), if self.exit.is_none() => Event::Exited(exit),
            () = self.process.handle.superseded(), if self.exit.is_none() => Event::Left,
            is_open = feed_ready(self.feed.as_mut()), if is_told => Event::FeedReady { is_open },
            () = sleep_until(tick), if tick.is_some() => Event::Tick,
        }
    }

    fn handle(&mut self, event: Event, buffer: &mut BytesMut) {
        match event {
            Event::Question(question) => self.answer(question),
            Event::Kill => {
                self.asked_to_kill = true;
                self.live(LifeInput::Kill);
            }
            Event::Release => self.release(),
            Event::Shutdown => {
                self.is_shutdown = true;
                if !self.life.is_released() {
                    self.release();
                }
            }
            Event::Read(Ok(0)) => self.output_ended(),
            Event::Read(Ok(_)) => {
                self.read(buffer);
                buffer.clear();
            }
            Event::Read(Err(error)) => {
                tracing::warn!(terminal = self.ends.id.as_str(), %error, "cannot read the output of a command");
                self.output_ended();
            }
            Event::Exited(report) => {
                self.exit = Some(report);
                self.counted = None;
                self.end_if_complete();
            }
            Event::Left => {
                self.is_left = true;
                let status = ExitStatus::Unknown;
                self.ends.publish.send_replace(Some(TerminalReport { state: TerminalState::Killed, status }));
            }
            Event::FeedReady { is_open } => self.send_next(is_open),
            Event::Tick => {
                self.live(LifeInput::Tick);
                if self.farewell.is_some_and(|until| now() >= until) && self.feed.take().is_some() {
                    tracing::warn!(
                        terminal = self.ends.id.as_str(),
                        "the end of a command's output was not read"
                    );
                }
            }
        }
    }

    fn release(&mut self) {
        self.live(LifeInput::Release);
        // Questions that wait are refused with it.
        self.ends.questions.close();
        while self.ends.questions.try_recv().is_ok() {}
        if self.life.has_ended() {
            self.tail = Tail::new(0);
        }
    }

    fn live(&mut self, input: LifeInput) {
        match self.life.handle(input, now()) {
            Ok(Some(LifeOutput::Stop)) => self.process.handle.stop(),
            Ok(Some(LifeOutput::Report(state))) => {
                let status = self.exit.as_ref().map(|exit| exit.status.clone());
                let status = status.expect("the end is reported after the exit");
                self.report(TerminalReport { state, status });
            }
            Ok(None) => {}
            Err(error) => tracing::error!(terminal = self.ends.id.as_str(), %error, "a terminal went wrong"),
        }
    }

    fn answer(&self, question: Question) {
        match question {
            Question::Output { limit, answer } => {
                let output = self.tail.last(self.limits.of_question(limit));
                let report = self.ends.publish.borrow().clone();
                let _gave_up = answer.send(TerminalSnapshot { output, report });
            }
            Question::Resize { size, answer } => {
                let _gave_up = answer.send(self.process.stdout.resize(size));
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        let known = usize::try_from(self.known).unwrap_or(usize::MAX).min(bytes.len());
        self.known -= known as u64;
        let mut text = String::new();
        self.decoder.push(&bytes[known..], &mut text);
        self.keep(&text);
        if let Some(kept) = self.kept.as_mut().filter(|_| self.known == 0) {
            let bytes = self.process.stdout.position() - self.decoder.incomplete() as u64;
            kept.read(&self.process, Place { bytes, text: self.tail.written() });
        }
    }

    fn keep(&mut self, text: &str) {
        self.tail.push(text);
        if let Some(feed) = &mut self.feed {
            let now = now();
            feed.pieces.push(text, now);
            feed.send_due(&self.ends.id, now);
        }
    }

    fn output_ended(&mut self) {
        self.reading = false;
        let mut text = String::new();
        self.decoder.finish(&mut text);
        self.keep(&text);
        self.end_if_complete();
    }

    /// The command is gone and all it wrote is read. The supervisor bounds the time between the two.
    fn end_if_complete(&mut self) {
        if let (Some(exit), false) = (&self.exit, self.reading) {
            self.live(LifeInput::Ended { stopped: !exit.rungs.is_empty() });
        }
    }

    fn report(&mut self, report: TerminalReport) {
        if let Some(feed) = &mut self.feed {
            feed.pieces.end();
            feed.last = Some(TerminalEvent::Ended {
                terminal: self.ends.id.clone(),
                report: report.clone(),
                output: self.tail.last(self.limits.shown),
            });
        }
        if self.life.is_released() {
            self.tail = Tail::new(0);
        }
        self.untold = Some((report, now() + FAREWELL));
    }

    fn send_next(&mut self, is_open: bool) {
        let Some(feed) = &mut self.feed else { return };
        let event = feed.take(&self.ends.id, now());
        let is_last = matches!(event, Some(TerminalEvent::Ended { .. }));
        let sent = is_open && event.is_some_and(|event| feed.sender.send_item(event).is_ok());
        if !sent || is_last {
            self.feed = None;
        }
    }
}

/// Waits until the feed's reader takes another event; false when it is gone.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped, not even the place in the queue.
async fn feed_ready(feed: Option<&mut OpenFeed>) -> bool {
    let Some(feed) = feed else { return false };
    poll_fn(|cx| feed.sender.poll_reserve(cx)).await.is_ok()
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at.into()).await;
    }
}
