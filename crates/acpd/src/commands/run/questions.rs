//! What an agent asks during `acpd run`: the person at the terminal answers; without one it is refused.
//!
//! Owned by the conversation. Invariants: every question gets one answer; one is on the screen, the others wait in
//! their order; the keyboard is open while one is there and not longer. Nothing is allowed without an answer.

use super::conversation::Conversation;
use super::show::Show;
use super::unanswered::Outcome;
use crate::clean;
use crate::cli::RunFormat;
use crate::exit::Failure;
use crate::keyboard::{Key, Keyboard, Stroke, Typed};
use crate::streams::remark;
use crate::view::{Choice, Question, Screen, not_asked};
use acpd_host::method;
use acpd_wire::{OwnedId, RawId, codes, member};
use rustix::process::Signal;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::IsTerminal;

/// The words for a question that the agent has withdrawn.
const TAKEN_BACK: &str = "taken back: the agent does not wait for an answer any more";

/// The agent's open questions. The host bounds how many there are.
pub(super) struct Questions {
    /// Why no person can be asked, if so.
    unattended: Option<String>,
    open: VecDeque<(OwnedId, Question)>,
    keyboard: Option<Keyboard>,
    /// Nothing on the screen is changed once it is written, and answers are lines.
    plain: bool,
    /// The line of an answer that is being written there.
    line: String,
}

impl Questions {
    /// Looks whether there is a person to ask.
    pub(super) fn new(format: RunFormat, screen: Screen) -> Self {
        let why = match () {
            () if format != RunFormat::Text => Some("--format quiet and json do not ask"),
            () if !std::io::stdin().is_terminal() => Some("stdin is not a terminal"),
            () if !std::io::stderr().is_terminal() => Some("stderr is not a terminal"),
            () => None,
        };
        let unattended = why.map(str::to_owned);
        let plain = !screen.terminal;
        Self { unattended, open: VecDeque::new(), keyboard: None, plain, line: String::new() }
    }

    /// The terminal is left to the shell: nothing is asked for now.
    fn close(&mut self) {
        self.keyboard = None;
    }

    /// What the person does about the question on the screen; never, when there is none.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn typed(&mut self) -> Typed {
        let Some(keyboard) = &mut self.keyboard else { return std::future::pending().await };
        if !self.plain {
            return keyboard.next().await;
        }
        loop {
            match keyboard.next_stroke().await {
                Typed::Key(Stroke::Text(text)) => self.line.push_str(&text),
                Typed::Key(stroke) => {
                    if let Some(key) = Key::of(&stroke) {
                        return Typed::Key(key);
                    }
                }
                Typed::Continued => return Typed::Continued,
                Typed::Gone => return Typed::Gone,
            }
        }
    }
}

impl Conversation {
    /// A request of the agent, or of acpd's.
    pub(super) async fn requested(
        &mut self,
        id: OwnedId,
        method: &str,
        params: &[u8],
    ) -> Result<(), Failure> {
        if method == method::ELICITATION {
            let params = acpd_wire::value(params);
            self.client.answer(&id, &json!({"action": "decline"})).await;
            return self.say(&declined(&params));
        }
        if method != method::REQUEST_PERMISSION {
            let text = format!("acpd run does not have {method}");
            self.client.refuse(&id, codes::METHOD_NOT_FOUND, &text).await;
            return Ok(());
        }
        let Some(question) = Question::read(params) else {
            // Not an error, which would answer nothing: acpd goes on to ask the other clients.
            self.client.answer(&id, &cancelled()).await;
            return Ok(());
        };
        if self.stop.is_some() {
            self.client.answer(&id, &cancelled()).await;
            return Ok(());
        }
        self.questions.open.push_back((id, question));
        match self.questions.open.len() {
            1 => self.ask().await,
            _ => Ok(()),
        }
    }

    /// A question without a person to ask has its answer in the log.
    pub(super) fn tell_unanswered(&mut self, outcome: Outcome) -> Result<(), Failure> {
        match outcome {
            Outcome::Declined(params) => self.say(&declined(&params)),
            Outcome::Refused(question) => self.tell_refused(&question),
            // A person who was asked is told in place of the question.
            Outcome::TakenBack if self.questions.unattended.is_some() => self.say(TAKEN_BACK),
            Outcome::TakenBack => Ok(()),
        }
    }

    fn tell_refused(&mut self, question: &Question) -> Result<(), Failure> {
        self.refused = true;
        let why = self.questions.unattended.as_deref().unwrap_or_default();
        match &mut self.show {
            Show::Text(view) => view.not_asked(question, question.rejection(), why)?,
            Show::Quiet(_) | Show::Json(_) => remark(&not_asked(question, question.rejection(), why)),
        }
        Ok(())
    }

    /// The person at the terminal did something. True when that was to cancel the turn.
    pub(super) async fn pressed(&mut self, typed: Typed) -> Result<bool, Failure> {
        let (Some(keyboard), Some(view)) = (&mut self.questions.keyboard, self.show.view()) else {
            return Ok(false);
        };
        let key = match typed {
            Typed::Key(key) => key,
            // What is asked can be answered from elsewhere.
            Typed::Gone if self.home.is_daemon() => {
                return Err(Failure::HungUp("the terminal is gone".to_owned()));
            }
            Typed::Gone => return self.become_unattended("the terminal is gone").await.map(|()| false),
            Typed::Continued => {
                let back = keyboard.enter_again();
                view.back_on_screen()?;
                return self.still_there(back).await.map(|()| false);
            }
        };
        match key {
            Key::Interrupt | Key::Escape => return Ok(true),
            Key::Suspend | Key::Quit => {
                view.leave_screen()?;
                let back = keyboard.stop(if key == Key::Quit { Signal::QUIT } else { Signal::TSTP });
                view.back_on_screen()?;
                self.still_there(back).await?;
            }
            key => {
                let chosen = match (self.questions.plain, key) {
                    (false, key) => view.press(key)?,
                    (true, Key::Enter) => {
                        let line = std::mem::take(&mut self.questions.line);
                        let chosen = view.answer_by_name(&line)?;
                        if chosen.is_none() {
                            view.told(&view.plain_menu())?;
                        }
                        chosen
                    }
                    (true, _) => None,
                };
                if let Some(choice) = chosen {
                    self.refused |= choice.refuses();
                    if let Some((id, _)) = self.questions.open.pop_front() {
                        self.client.answer(&id, &selected(&choice)).await;
                    }
                    self.ask().await?;
                }
            }
        }
        Ok(false)
    }

    /// `$/cancel_request`: a question needs no answer any more.
    pub(super) async fn withdrawn(&mut self, params: &[u8]) -> Result<(), Failure> {
        let raw: Option<&RawValue> = serde_json::from_slice(params).ok();
        let id = raw.and_then(|raw| RawId::new(member(raw, "requestId")?)).map(|id| id.to_owned());
        let Some(at) = self.questions.open.iter().position(|(open, _)| Some(open) == id.as_ref()) else {
            return Ok(());
        };
        self.questions.open.remove(at);
        if at > 0 {
            return Ok(());
        }
        if let Some(view) = self.show.view() {
            view.take_back(TAKEN_BACK)?;
        }
        self.ask().await
    }

    /// The turn is being cancelled, and so are its questions.
    pub(super) async fn cancel_questions(&mut self) -> Result<(), Failure> {
        self.questions.close();
        if let Some(view) = self.show.view() {
            view.take_back("not answered: the turn is cancelled")?;
        }
        for (id, _) in std::mem::take(&mut self.questions.open) {
            self.client.answer(&id, &cancelled()).await;
        }
        Ok(())
    }

    /// The turn is over: answers are not needed any more.
    pub(super) fn forget_questions(&mut self) {
        self.questions.close();
        self.questions.open.clear();
    }

    /// Puts the next question on the screen, or closes the keyboard when there is none.
    async fn ask(&mut self) -> Result<(), Failure> {
        let Some((_, question)) = self.questions.open.front() else {
            self.questions.close();
            return Ok(());
        };
        if self.questions.unattended.is_some() {
            return self.refuse_all().await;
        }
        let question = question.clone();
        let (Ok(rows), Some(view)) = (self.questions.listen(), self.show.view()) else {
            return self.become_unattended("the terminal cannot be read").await;
        };
        view.ask(question, rows)?;
        if self.questions.plain {
            self.questions.line.clear();
            view.told(&view.plain_menu())?;
        }
        Ok(())
    }

    async fn still_there(&mut self, back: std::io::Result<()>) -> Result<(), Failure> {
        match back {
            Ok(()) => Ok(()),
            Err(error) => self.become_unattended(&format!("the terminal cannot be read: {error}")).await,
        }
    }

    /// From now on no person can be asked.
    async fn become_unattended(&mut self, why: &str) -> Result<(), Failure> {
        self.questions.close();
        self.questions.unattended = Some(why.to_owned());
        if let Some(view) = self.show.view() {
            view.take_back(why)?;
        }
        self.refuse_all().await
    }

    /// PE-4: without a person questions are refused in the agent's own words. That is told when it counts.
    async fn refuse_all(&mut self) -> Result<(), Failure> {
        let mut told = Ok(());
        for (id, question) in std::mem::take(&mut self.questions.open) {
            self.client.answer(&id, &question.rejection().map_or_else(cancelled, selected)).await;
            match self.feed.is_some() {
                true => self.unanswered.refuses(question),
                // No log says more.
                false => told = told.and(self.tell_refused(&question)),
            }
        }
        told
    }
}

impl Questions {
    /// Opens the keyboard, or forgets what was typed before; gives the rows of the screen.
    fn listen(&mut self) -> std::io::Result<usize> {
        match &mut self.keyboard {
            Some(keyboard) => keyboard.forget()?,
            None if self.plain => self.keyboard = Some(Keyboard::of_lines()?),
            None => self.keyboard = Some(Keyboard::open()?),
        }
        Ok(self.keyboard.as_ref().map_or(0, Keyboard::rows))
    }
}

/// What is said of a form, or of a page to open: only permissions are asked here.
fn declined(params: &Value) -> String {
    let words = |key: &str| params[key].as_str().map(|text| clean::line(text, 300)).unwrap_or_default();
    let page = if params["url"].is_string() { format!(" {}", words("url")) } else { String::new() };
    format!("declined: {}{page} (`acpd run` asks for permissions only)", words("message"))
}

pub(super) fn selected(choice: &Choice) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": choice.id}})
}

pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}
