//! What a viewer does, decided without a runtime: inputs in, effects out, in order.
//!
//! Owned by its shell, which performs the effects and adds nothing. Invariants: events are shown in order, each once; an
//! answer comes behind all events that precede it and before all others; how a run ended is shown once. Not here: where
//! events and commands come from, what a transport does with lines, and how the run of an answer ended.

mod state;

use super::alike::Alike;
use super::effects::{Body, Effect, Effects};
use super::page::Page;
use acpd_eventlog::Event as StoredEvent;
use acpd_host::{EventKind, OpenQuestion, TerminationInfo};
use acpd_record::SessionId;
use bytes::Bytes;
pub(super) use state::{End, Log, ViewerState};
use std::collections::VecDeque;

/// An answer and the events around it. `T` is what the shell needs to write it.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    /// The last event that precedes it.
    pub(super) after: u64,
    /// The end that it stands in front of, if it does: it is not written before that can be read.
    pub(super) before: Option<u64>,
    /// Where the run began that was asked for it, if one was: it counts only if what it stands behind was recorded.
    pub(super) asked_run: Option<u64>,
    /// What the client is asked behind it.
    pub(super) questions: Vec<OpenQuestion>,
    pub(super) body: Body,
    pub(crate) delivery: T,
}

/// Where a client joins a session, or goes on with it.
#[derive(Debug)]
pub(super) struct Joining<T> {
    /// Where the run began that is followed; None to show the history only.
    pub(super) run: Option<u64>,
    /// The events come from here on.
    pub(super) from: u64,
    /// Events up to this one are history.
    pub(super) history_until: u64,
    /// The client has seen what comes before.
    pub(super) goes_on: bool,
    /// What it is not shown of what is read.
    pub(super) skip_until: u64,
    /// The answer that attaches the client.
    pub(super) answer: Answer<T>,
}

/// What happens to a viewer.
#[derive(Debug)]
pub(super) enum Input<'a, T> {
    /// The viewer begins.
    Begin,
    /// An answer that was queued before what is read next: it may stand in front of that. Nothing is done until then.
    Ahead(Answer<T>),
    /// The next event of a block.
    Event(StoredEvent<'a>),
    /// All events of a block that is [shown alike](ViewerCore::shows_alike), up to `last`, as `lines`.
    Alike { last: u64, lines: Bytes },
    /// All events of a block were given.
    BlockRead,
    /// The log has no more events, or (not `whole`) cannot be read.
    LogEnded { whole: bool },
    /// How the run ended, as [`Effect::AwaitEnd`] asked.
    RunEnded(&'a TerminationInfo),
    /// An answer.
    Answer(Answer<T>),
    /// The client attached anew.
    Follow(Box<Joining<T>>),
    /// The client watches no more; with the answer to that, which no event precedes.
    Leave(Answer<T>),
    /// The client is asked again, unless the question was answered.
    Ask(OpenQuestion),
    /// The connection lets the viewer go.
    Dropped { run_goes_on: bool },
}

/// The viewer.
#[derive(Debug)]
pub(super) struct ViewerCore<T> {
    state: ViewerState,
    page: Page,
    /// Held back, in the order of the events that they stand behind.
    waiting: VecDeque<Answer<T>>,
    /// Where the client goes on once it has seen what comes before; no command is taken until then.
    next: Option<Box<Joining<T>>>,
    /// The last end of a run that was read, shown or as history.
    last_end: u64,
    /// Attachments so far.
    attachments: u64,
    /// The connection has let it go.
    is_dropped: bool,
    is_done: bool,
}

impl<T> ViewerCore<T> {
    /// What it views.
    pub(super) fn session(&self) -> &SessionId {
        self.page.session()
    }

    /// A viewer for which `page` writes; that has the end of the history already.
    pub(super) fn new(page: Page, joining: Joining<T>) -> Self {
        let Joining { run, from, answer, .. } = joining;
        Self {
            state: ViewerState::reading(run, from),
            page,
            waiting: VecDeque::from([answer]),
            next: None,
            last_end: 0,
            attachments: 1,
            is_dropped: false,
            is_done: false,
        }
    }

    /// Whether the log is read.
    pub(super) fn reads(&self) -> bool {
        self.state.reads()
    }

    /// Whether commands are taken.
    pub(super) fn takes_commands(&self) -> bool {
        !self.is_dropped && self.next.is_none()
    }

    /// Whether the events `first..=last` of a block may be shown to the client as to others: live, in one, and with no answer
    /// between them.
    pub(super) fn shows_alike(&self, first: u64, last: u64) -> bool {
        matches!(self.state, ViewerState::Live { .. })
            && self.page.is_news(first)
            && self.waiting.front().is_none_or(|answer| answer.after >= last)
    }

    /// What the client sees as all others of equal capabilities do.
    pub(super) fn alike(&mut self) -> &mut Alike {
        self.page.alike()
    }

    /// Whether the client has left.
    pub(super) fn is_left(&self) -> bool {
        self.state.is_detached()
    }

    /// Whether nothing is left to do.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Takes one input. `is_idle`: no command is queued, and no place for one is held.
    pub(super) fn handle(&mut self, input: Input<'_, T>, is_idle: bool, effects: &mut Effects<T>) {
        match input {
            Input::Begin => {
                self.end_history(effects);
                self.release(effects);
            }
            Input::Ahead(answer) => self.hold(answer),
            Input::Event(event) => self.read_event(&event, effects),
            Input::Alike { last, lines } => {
                if self.state.advance(last) {
                    effects.add(&lines);
                }
            }
            Input::BlockRead => self.settle(is_idle, effects),
            Input::LogEnded { whole } => {
                self.log_ended(whole, effects);
                self.settle(is_idle, effects);
            }
            Input::RunEnded(info) => {
                self.run_ended(info, effects);
                self.settle(is_idle, effects);
            }
            Input::Answer(answer) => {
                self.hold(answer);
                self.settle(is_idle, effects);
            }
            Input::Follow(joining) => {
                self.next = Some(joining);
                self.settle(is_idle, effects);
            }
            Input::Leave(answer) => {
                self.leave(answer, effects);
                self.settle(is_idle, effects);
            }
            Input::Ask(question) => {
                if !self.state.is_detached() {
                    self.page.write_open(&[question], effects.lines());
                }
                self.settle(is_idle, effects);
            }
            Input::Dropped { run_goes_on } => self.dropped(run_goes_on, is_idle, effects),
        }
    }

    /// After everything that may have changed what is due. First what there is, then what comes next: when nothing is
    /// left to read, that can begin at once.
    fn settle(&mut self, is_idle: bool, effects: &mut Effects<T>) {
        if self.state.awaits_end() {
            return;
        }
        self.release(effects);
        self.end_history(effects);
        self.go_on(effects);
        self.end_history(effects);
        self.end_reading_on(is_idle, effects);
        self.release(effects);
        self.is_done |= self.is_dropped && !self.state.reads();
    }

    fn read_event(&mut self, event: &StoredEvent<'_>, effects: &mut Effects<T>) {
        if !self.state.advance(event.seq) {
            return;
        }
        let shows_history_only = matches!(self.state, ViewerState::Replaying { .. });
        if shows_history_only && event.seq > self.page.history_until() {
            return;
        }
        if EventKind::from_number(event.kind) == Some(EventKind::Ended) {
            self.last_end = self.last_end.max(event.seq);
            self.replace_unrecorded();
        }
        if self.waiting.front().is_some_and(|answer| answer.after < event.seq) {
            self.release_up_to(event.seq - 1, event.seq, effects);
        }
        if !self.state.is_detached() {
            self.page.write(event, effects.lines());
        }
    }

    /// What is only read ends with its history: what another process adds to it is not watched here.
    fn end_history(&mut self, effects: &mut Effects<T>) {
        let until = self.page.history_until();
        if let ViewerState::Replaying { read } = self.state
            && read >= until
        {
            self.state = ViewerState::Ending { read: until, end: End::Open };
            effects.push(Effect::DropCursor);
            effects.push(Effect::Finished { attachments: self.attachments });
        }
    }

    /// The run is over, or it cannot be read any more; either way the client learns how it ended.
    fn log_ended(&mut self, whole: bool, effects: &mut Effects<T>) {
        let end = if whole { End::Final } else { End::Open };
        self.state = match self.state {
            ViewerState::Replaying { read } => ViewerState::Ending { read, end },
            // Only a log that could not be written, or read, has no end.
            ViewerState::Live { read, run } if self.last_end <= run => {
                ViewerState::Ending { read, end: End::Awaited }
            }
            ViewerState::Live { read, .. } => ViewerState::Ending { read, end },
            ViewerState::Detached { shown, log: Log::Open { read } } => {
                ViewerState::Detached { shown, log: Log::ended(read, end) }
            }
            ViewerState::Ending { .. } | ViewerState::Detached { .. } => return,
        };
        effects.push(Effect::DropCursor);
        effects.push(Effect::LeaveSeat);
        effects.push(match self.state.awaits_end() {
            true => Effect::AwaitEnd,
            false => Effect::Finished { attachments: self.attachments },
        });
    }

    /// The client learns from the record of the end what the log does not say.
    fn run_ended(&mut self, info: &TerminationInfo, effects: &mut Effects<T>) {
        let ViewerState::Ending { read, end: end @ End::Awaited } = &mut self.state else { return };
        let read = *read;
        *end = End::Final;
        self.replace_unrecorded();
        self.release_up_to(read, u64::MAX, effects);
        self.page.write_ended(info, effects.lines());
        effects.push(Effect::Finished { attachments: self.attachments });
    }

    /// The client watches no more. An answer that it is still owed waits until what precedes it is in the log.
    fn leave(&mut self, answer: Answer<T>, effects: &mut Effects<T>) {
        self.state = self.state.left();
        effects.push(Effect::LeaveRun);
        effects.push(Effect::Finished { attachments: self.attachments });
        self.page.write_left(effects.lines());
        self.waiting.push_front(answer);
    }

    /// A client that has left is owed nothing any more, so nothing need be read.
    fn end_reading_on(&mut self, is_idle: bool, effects: &mut Effects<T>) {
        if let ViewerState::Detached { log: log @ Log::Open { .. }, .. } = &mut self.state
            && is_idle
            && self.waiting.is_empty()
            && self.next.is_none()
        {
            *log = Log::Closed;
            effects.push(Effect::DropCursor);
        }
    }

    /// The connection lets go. A session that goes on does so without this viewer.
    fn dropped(&mut self, run_goes_on: bool, is_idle: bool, effects: &mut Effects<T>) {
        self.is_dropped = true;
        match self.state {
            ViewerState::Live { .. } if run_goes_on => self.is_done = true,
            ViewerState::Detached { .. } => self.is_done = true,
            _ => self.settle(is_idle, effects),
        }
    }

    /// Goes on from where the client attached anew, once everything up to there was written.
    fn go_on(&mut self, effects: &mut Effects<T>) {
        let (reached, replayed) = (self.state.reached(), self.page.history_until());
        let Some(next) = self.next.take_if(|next| next.history_until.max(replayed) <= reached) else {
            return;
        };
        let Joining { run, from, history_until, goes_on, skip_until, mut answer } = *next;
        self.attachments += 1;
        // More of it may have been written already; that is history then, and not written again.
        let seen = self.state.shown().max(history_until);
        answer.after = answer.after.max(seen);
        // One that is attached has seen all up to here.
        let replays = from < history_until && !goes_on;
        let opens_cursor = replays || self.state.is_detached() || !self.state.reads();
        if opens_cursor {
            // One that has left says itself what it has seen.
            let skip_until = match goes_on {
                true => skip_until,
                false if replays => 0,
                false => seen,
            };
            self.page.restart((seen, goes_on), skip_until);
            if goes_on || replays {
                self.page.forget_terminals();
            }
        }
        self.state = ViewerState::reading(run, if opens_cursor { from } else { reached });
        effects.push(Effect::Join { opens_cursor });
        self.hold(answer);
    }

    /// Keeps an answer until what it stands behind was written.
    fn hold(&mut self, answer: Answer<T>) {
        let place = self.waiting.partition_point(|waiting| waiting.after <= answer.after);
        self.waiting.insert(place, answer);
    }

    /// The number that an answer's run stopped short of, if what the answer stands behind was not recorded: that of its
    /// end, or the first that was given to nothing.
    fn unrecorded(&self, answer: &Answer<T>) -> Option<u64> {
        let began_after = answer.asked_run?;
        let first = match self.last_end {
            end if end > began_after => end,
            _ => self.state.final_event()? + 1,
        };
        (first <= answer.after).then_some(first)
    }

    /// An answer whose events never came into the log would report what cannot be seen: how the run ended is the answer
    /// instead, in front of that end (PR-11, contract 7.3).
    fn replace_unrecorded(&mut self) {
        let mut is_replaced = false;
        for at in 0..self.waiting.len() {
            let Some(first) = self.unrecorded(&self.waiting[at]) else { continue };
            let answer = &mut self.waiting[at];
            (answer.after, answer.before) = (first - 1, None);
            (answer.asked_run, answer.body) = (None, Body::EndOfRun);
            is_replaced = true;
        }
        if is_replaced {
            // They stand in front of the end now; the others stay in their order.
            self.waiting.make_contiguous().sort_by_key(|answer| answer.after);
        }
    }

    /// Writes the answers whose events were written.
    fn release(&mut self, effects: &mut Effects<T>) {
        self.replace_unrecorded();
        let reached = self.state.reached();
        self.release_up_to(reached, reached, effects);
    }

    /// Writes the answers that stand behind what was `written`, but none whose end cannot be read yet.
    fn release_up_to(&mut self, written: u64, readable: u64, effects: &mut Effects<T>) {
        let is_due =
            |answer: &Answer<T>| answer.after <= written && answer.before.is_none_or(|end| end <= readable);
        // One that waits for its end holds up no other.
        while let Some(answer) =
            self.waiting.iter().position(is_due).and_then(|place| self.waiting.remove(place))
        {
            effects.push(Effect::Answer { body: answer.body, delivery: answer.delivery });
            // Questions that were open a moment ago.
            if !self.state.is_detached() {
                self.page.write_open(&answer.questions, effects.lines());
            }
        }
    }
}

#[cfg(test)]
mod tests;
