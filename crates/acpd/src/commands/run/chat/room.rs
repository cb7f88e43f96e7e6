//! A chat: everything that comes, from the person, the host and the log, one after the other.
//!
//! Owned by the command while the chat lasts. Invariants: what is shown of the session comes from its events, in their
//! order; an answer or a question of the host is looked at when the events before it were shown; the terminal is as it
//! was on every way out. Not here: what to do about it (`core.rs`), questions (`asked.rs`), the end (`conversation.rs`).

use super::super::attachments::Takes;
use super::super::conversation::Conversation;
use super::super::feed::Feed;
use super::super::talking::Phase;
use super::Chatting;
use super::asked::Open;
use super::core::{Core, Effect, Happened, Leaving};
use super::over::Over;
use super::past::Past;
use super::prompt::blocks;
use super::telling::{Fact, Teller};
use super::words::Word;
use crate::client::Incoming;
use crate::daemon::Event;
use crate::editor::{Edited, Editor};
use crate::exit::Failure;
use crate::keyboard::{Keyboard, Stroke, Typed};
use crate::runtime::if_any;
use crate::signals::{StopSignal, StopSignals};
use crate::view::TICK;
use acpd_host::{META, method};
use acpd_wire::{OwnedId, RawId, member};
use rustix::process::Signal;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use tokio::time::Instant;

/// A prompt of this chat without an answer.
struct Own {
    key: String,
    text: String,
    /// Others were before it.
    queued: bool,
    began: bool,
}

/// What comes next.
enum Next {
    Host(Option<Incoming>),
    Event(Option<Event>),
    Typed(Typed<Stroke>),
    Tick,
    Signal(StopSignal),
}

/// One chat.
pub(super) struct Room<'a> {
    pub(super) talk: &'a mut Conversation,
    pub(super) keyboard: Keyboard,
    /// Nothing on the screen is changed; lines come as the terminal edits them.
    pub(super) plain: bool,
    pub(super) open: Open,
    pub(super) teller: Teller,
    /// When the line was last edited.
    pub(super) edited: Option<Instant>,
    pub(super) chatting: Chatting,
    pub(super) editor: Editor,
    pub(super) core: Core,
    feed: Option<Feed>,
    own: HashMap<u64, Own>,
    pub(super) past: Option<Past>,
}

impl<'a> Room<'a> {
    /// Opens the terminal; the line editor, or none where the terminal cannot move its cursor.
    pub(super) fn open(
        talk: &'a mut Conversation,
        chatting: Chatting,
        feed: Option<Feed>,
        past: Option<Past>,
    ) -> Result<Self, Failure> {
        let plain = talk.show.view().is_none_or(|view| !view.is_terminal());
        let keyboard = match (plain, talk.early.is_empty()) {
            (true, _) => Keyboard::of_lines()?,
            (false, true) => Keyboard::of_editor()?,
            // What was typed before a question answers nothing.
            (false, false) => Keyboard::open()?,
        };
        // What was typed while the agent started answers nothing of what it asks first.
        let edited = keyboard.was_typed().then(Instant::now);
        let editor = Editor::new(chatting.history());
        let leaving = match (talk.joined, talk.home.is_daemon()) {
            (true, _) => Leaving::LeavesAlone,
            (false, true) => Leaving::ClosesInDaemon,
            (false, false) => Leaving::Closes,
        };
        let (open, teller, core) = (Open::default(), Teller::default(), Core::new(leaving));
        let room = Self {
            talk,
            keyboard,
            plain,
            open,
            teller,
            edited,
            chatting,
            editor,
            core,
            feed,
            own: HashMap::new(),
            past,
        };
        room.brackets(true)?;
        Ok(room)
    }

    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Goes on until it is over.
    pub(super) async fn stay(&mut self, signals: &mut StopSignals) -> Result<Over, Failure> {
        let over = self.stay_on(signals).await;
        if let Some(view) = self.talk.show.view() {
            view.input(None)?;
        }
        self.brackets(false)?;
        over
    }

    async fn stay_on(&mut self, signals: &mut StopSignals) -> Result<Over, Failure> {
        for incoming in std::mem::take(&mut self.talk.early) {
            self.later(incoming).await;
        }
        if self.past.is_none() {
            self.open_prompt()?;
        }
        let mut ticks = tokio::time::interval(TICK);
        loop {
            self.draw()?;
            let next = tokio::select! {
                incoming = self.talk.client.next() => Next::Host(incoming),
                event = if_any(self.feed.as_mut().map(Feed::next)) => Next::Event(event),
                typed = self.keyboard.next_stroke() => Next::Typed(typed),
                _ = ticks.tick() => Next::Tick,
                signal = signals.next_one() => Next::Signal(signal),
            };
            if let Some(over) = self.take(next).await? {
                return Ok(over);
            }
        }
    }

    async fn take(&mut self, next: Next) -> Result<Option<Over>, Failure> {
        match next {
            Next::Host(None) => Ok(Some(Over::Lost)),
            Next::Host(Some(Incoming::News(news))) => self.talk.say(&news).map(|()| None),
            Next::Host(Some(incoming)) => {
                self.later(incoming).await;
                self.take_late().await
            }
            Next::Event(event) => {
                if let Some(over) = self.event(event).await? {
                    return Ok(Some(over));
                }
                self.take_late().await
            }
            Next::Typed(Typed::Key(stroke)) => self.typed(stroke).await,
            Next::Typed(Typed::Continued) => {
                self.keyboard.enter_again()?;
                self.back()?;
                Ok(None)
            }
            Next::Typed(Typed::Gone) | Next::Signal(StopSignal::Hangup) if self.talk.home.is_daemon() => {
                Ok(Some(Over::HungUp))
            }
            Next::Typed(Typed::Gone) | Next::Signal(StopSignal::Hangup | StopSignal::Terminate) => {
                self.happened(Happened::Terminated).await
            }
            Next::Signal(StopSignal::Interrupt) => self.happened(Happened::Interrupt).await,
            Next::Tick => {
                let elapsed = self.talk.elapsed();
                if let (true, Some(view)) = (self.core.is_busy(), self.talk.show.view()) {
                    view.tick(elapsed)?;
                }
                Ok(None)
            }
        }
    }

    /// Notes what the host said, and behind which event it belongs.
    async fn later(&mut self, incoming: Incoming) {
        if let Incoming::Notification { method, .. } = &incoming
            && method != method::CANCEL_REQUEST
        {
            // Updates come as events.
            return;
        }
        let behind = self.talk.recorded_so_far(self.feed.is_some()).await;
        self.talk.late.push(behind, incoming);
    }

    /// Looks at what the host said, as far as the events before it were shown.
    async fn take_late(&mut self) -> Result<Option<Over>, Failure> {
        while let Some(incoming) = self.talk.late.next(self.feed.is_some()) {
            match incoming {
                Incoming::Answer { id, outcome } => {
                    if let Some(over) = self.answered(id, outcome).await? {
                        return Ok(Some(over));
                    }
                }
                Incoming::Request { id, method, params } => self.asked(id, &method, &params).await?,
                Incoming::News(_) => {}
                Incoming::Notification { params, .. } => {
                    if let Some(id) = cancelled_id(&params) {
                        self.withdrawn(&id)?;
                    }
                }
            }
        }
        Ok(None)
    }

    async fn event(&mut self, event: Option<Event>) -> Result<Option<Over>, Failure> {
        let Some(event) = event else {
            self.feed = None;
            return Ok(None);
        };
        self.talk.late.shown(event.seq);
        let mut fact = Fact::Nothing;
        if let Some(past) = &mut self.past {
            fact = past.tell(&mut self.teller, &event)?;
            if event.seq >= past.until {
                self.show_past()?;
            }
        } else if let Some(view) = self.talk.show.view() {
            fact = self.teller.tell(view, &event)?;
        }
        match fact {
            Fact::Nothing => Ok(None),
            Fact::Began(key) => {
                self.talk.begun = Instant::now();
                let own = self.began(key)?;
                self.happened(Happened::Began { own }).await
            }
            Fact::TurnEnded { own } => self.happened(Happened::TurnEnded { own }).await,
            Fact::Resolved(text) => self.resolved(&text).map(|()| None),
            // Runs that are over by now are the past.
            Fact::Ended if self.past.is_some() || event.seq < self.chatting.begins => Ok(None),
            Fact::Ended => {
                self.talk.ended = true;
                self.happened(Happened::Ended).await
            }
        }
    }

    /// A turn begins; a prompt that waited is said again where it belongs. Whether it is this chat's.
    fn began(&mut self, key: Option<String>) -> Result<bool, Failure> {
        let own = self.own.values_mut().find(|own| Some(&own.key) == key.as_ref());
        let Some(own) = own else { return Ok(false) };
        own.began = true;
        if let (true, Some(view)) = (own.queued, self.talk.show.view()) {
            view.said(None, &own.text)?;
        }
        Ok(true)
    }

    /// A request of this chat was answered.
    async fn answered(&mut self, id: u64, outcome: Result<Value, Value>) -> Result<Option<Over>, Failure> {
        let Some(own) = self.own.remove(&id) else { return Ok(None) };
        self.teller.own.remove(&own.key);
        match outcome {
            // The event of its end was shown.
            Ok(_) if own.began => {}
            Err(error) if own.began || !self.core.is_cancelled() => {
                self.talk.failed(Phase::Prompt, &error)?;
                // The next one may do better, unless the session is over.
                let failed = self.talk.outcome.take();
                if self.talk.ended {
                    self.talk.outcome = failed;
                    self.core.step(Happened::Ended);
                }
            }
            Ok(_) | Err(_) => {
                if let Some(view) = self.talk.show.view() {
                    view.said(Some("not sent"), &own.text)?;
                }
            }
        }
        let over = self.happened(Happened::Answered).await?;
        self.open_prompt()?;
        Ok(over)
    }

    async fn typed(&mut self, stroke: Stroke) -> Result<Option<Over>, Failure> {
        let Some(stroke) = self.answer_by(stroke).await? else { return Ok(None) };
        let edited = match (&stroke, self.open.waiting.is_empty()) {
            // At a question there is nothing to discard.
            (Stroke::Interrupt, false) => Edited::Interrupt,
            _ => self.editor.stroke(stroke),
        };
        match edited {
            Edited::Nothing | Edited::Escape => Ok(None),
            Edited::Changed | Edited::Discarded => {
                self.edited = Some(Instant::now());
                Ok(None)
            }
            Edited::Entered(text) if self.open.form().is_some() && !self.open.is_typing() => {
                self.fill(&text).await.map(|()| None)
            }
            Edited::Entered(text) if let Some(word) = Word::of(&text, &self.teller.commands) => {
                self.editor.remember(&text);
                let over = self.obey(word).await?;
                self.open_prompt()?;
                Ok(over)
            }
            Edited::Entered(text) if self.answer_line(&text).await? => Ok(None),
            Edited::Entered(text) => {
                // It is written: what comes next may be an answer.
                self.edited = None;
                let over = self.happened(Happened::Line(Word::unescaped(text))).await?;
                self.open_prompt()?;
                Ok(over)
            }
            Edited::Complete => self.complete().map(|()| None),
            Edited::Interrupt => self.happened(Happened::Interrupt).await,
            Edited::EndOfInput => self.happened(Happened::EndOfInput).await,
            Edited::Redraw => self.back().map(|()| None),
            Edited::Suspend => self.stop(Signal::TSTP).map(|()| None),
            Edited::Quit => self.stop(Signal::QUIT).map(|()| None),
        }
    }

    pub(super) async fn happened(&mut self, happened: Happened) -> Result<Option<Over>, Failure> {
        for effect in self.core.step(happened) {
            match effect {
                Effect::Prompt(text) => self.prompt(text).await?,
                Effect::PutBack(text) => self.editor.set(&text),
                Effect::Cancel => self.cancel().await?,
                Effect::TakeBack => self.take_back().await?,
                Effect::Say(text) => self.talk.announce(&text)?,
                Effect::Leave { interrupted } => return Ok(Some(Over::Left { interrupted })),
            }
        }
        Ok(None)
    }

    async fn prompt(&mut self, text: String) -> Result<(), Failure> {
        self.editor.remember(&text);
        let attached = std::mem::take(&mut self.talk.words.attachments);
        let takes = Takes { capabilities: &self.talk.capabilities, roots: &self.talk.words.roots };
        let content = blocks(&text, attached, self.chatting.files(), takes);
        let queued = self.core.is_queued();
        if let (false, Some(view)) = (self.plain, self.talk.show.view()) {
            view.said(None, &text)?;
        }
        let content = match content {
            Ok(content) => content,
            Err(wrong) => {
                self.talk.announce(&wrong)?;
                self.editor.set(&text);
                self.core.step(Happened::Answered);
                return Ok(());
            }
        };
        let key = uuid::Uuid::new_v4().to_string();
        let meta = json!({META: {"idempotencyKey": key}});
        let params = json!({"sessionId": self.talk.session, "prompt": content, "_meta": meta});
        let id = self.talk.client.request(method::SESSION_PROMPT, &params).await;
        self.teller.own.insert(key.clone());
        self.own.insert(id, Own { key, text, queued, began: false });
        Ok(())
    }

    /// Cancels the running turn.
    async fn cancel(&mut self) -> Result<(), Failure> {
        let session = json!({"sessionId": self.talk.session});
        self.talk.client.notify(method::SESSION_CANCEL, &session).await;
        self.cancel_questions().await
    }

    /// Takes back the prompts of this chat, and nothing of another client's: one that runs is cancelled, behind those that
    /// wait, or the next of them would begin.
    async fn take_back(&mut self) -> Result<(), Failure> {
        let mut own: Vec<(bool, u64)> = self.own.iter().map(|(id, own)| (own.began, *id)).collect();
        own.sort_unstable();
        for (_, id) in &own {
            self.talk.client.notify(method::CANCEL_REQUEST, &json!({"requestId": id})).await;
        }
        match own.last() {
            Some((true, _)) => self.cancel_questions().await,
            _ => Ok(()),
        }
    }
}

/// The id in the params of `$/cancel_request`.
fn cancelled_id(params: &[u8]) -> Option<OwnedId> {
    let raw: Option<&RawValue> = serde_json::from_slice(params).ok();
    raw.and_then(|raw| RawId::new(member(raw, "requestId")?)).map(|id| id.to_owned())
}
