//! What an agent asks in a chat, answered in place: permissions, forms, pages to open.
//!
//! Invariants: every question gets one answer; one is on the screen, the others wait in their order; what a person was
//! typing when a question came goes into the line, and answers nothing.

use super::super::questions::{cancelled, selected};
use super::form::{Filled, Form};
use super::room::Room;
use crate::clean::line;
use crate::exit::Failure;
use crate::keyboard::{Key, Stroke};
use crate::view::Question;
use acpd_host::method;
use acpd_wire::{OwnedId, codes};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// A pause in typing: what comes behind it was meant for the question.
const PAUSE: Duration = Duration::from_secs(1);

/// A question.
pub(super) enum Asked {
    Permission(Question),
    Form(Form),
    /// A page to open, and what is said of it.
    Page(String),
}

/// The agent's open questions. The host bounds how many there are.
#[derive(Default)]
pub(super) struct Open {
    pub(super) waiting: std::collections::VecDeque<(OwnedId, Asked)>,
    /// The person was typing when the question came, and has not paused since.
    typing: bool,
}

impl Open {
    /// Whether the person is still typing what has nothing to do with the question.
    pub(super) fn is_typing(&self) -> bool {
        self.typing
    }

    /// The form whose field is asked for, if that is the question.
    pub(super) fn form(&self) -> Option<&Form> {
        match self.waiting.front() {
            Some((_, Asked::Form(form))) => Some(form),
            _ => None,
        }
    }
}

impl Room<'_> {
    /// A request of the agent, or of acpd's, in its place among the events.
    pub(super) async fn asked(&mut self, id: OwnedId, method: &str, params: &[u8]) -> Result<(), Failure> {
        let asked = match method {
            method::REQUEST_PERMISSION => Question::read(params).map(Asked::Permission),
            method::ELICITATION => {
                let told = acpd_wire::value(params);
                match told["url"].as_str() {
                    Some(url) => {
                        let message = line(told["message"].as_str().unwrap_or_default(), 500);
                        Some(Asked::Page(format!("{message} {}", line(url, 2_000))))
                    }
                    None => Form::read(params).map(Asked::Form),
                }
            }
            _ => {
                let text = format!("acpd chat does not have {}", line(method, 100));
                self.talk.client.refuse(&id, codes::METHOD_NOT_FOUND, &text).await;
                return Ok(());
            }
        };
        let Some(asked) = asked else {
            // Not an error, which would answer nothing: acpd goes on to ask the other clients.
            let answer = if method == method::ELICITATION { declined() } else { cancelled() };
            self.talk.client.answer(&id, &answer).await;
            return Ok(());
        };
        self.open.waiting.push_back((id, asked));
        match self.open.waiting.len() {
            1 => self.ask(),
            _ => Ok(()),
        }
    }

    /// Puts the next question on the screen, if there is one.
    fn ask(&mut self) -> Result<(), Failure> {
        let Some((_, asked)) = self.open.waiting.front() else { return Ok(()) };
        self.open.typing =
            self.edited.is_some_and(|at| at.elapsed() < PAUSE) || !self.editor.text().is_empty();
        let (rows, plain) = (self.keyboard.rows(), self.is_plain());
        let Some(view) = self.talk.show.view() else { return Ok(()) };
        match asked {
            Asked::Permission(question) => {
                view.ask(question.clone(), rows)?;
                if plain {
                    view.told(&view.menu())?;
                }
            }
            Asked::Form(form) => {
                let mut lines = vec![format!("? {}", form.message)];
                lines.push("  Enter goes on, Escape declines, Ctrl-C cancels the turn".to_owned());
                lines.extend(form.choices());
                view.told(&lines)?;
            }
            Asked::Page(text) => {
                let how = "  y when it is done, n declines, Ctrl-C cancels the turn".to_owned();
                view.told(&[format!("? open this page: {text}"), how])?;
            }
        }
        self.open_prompt()
    }

    /// The person did something while there is a question. Gives it back when it is for the line.
    pub(super) async fn answer_by(&mut self, stroke: Stroke) -> Result<Option<Stroke>, Failure> {
        let is_pause = self.edited.is_none_or(|at| at.elapsed() >= PAUSE);
        // A line that was begun is finished, or discarded.
        self.open.typing &= !(is_pause && self.editor.text().is_empty());
        let Some((_, asked)) = self.open.waiting.front() else { return Ok(Some(stroke)) };
        if self.open.typing && !matches!(stroke, Stroke::Interrupt | Stroke::Suspend | Stroke::Quit) {
            self.edited = Some(Instant::now());
            return Ok(Some(stroke));
        }
        let Some(view) = self.talk.show.view() else { return Ok(None) };
        match (asked, Key::of(&stroke)) {
            // A form is filled in the line.
            (Asked::Form(_), Some(Key::Escape)) => self.settle(declined()).await?,
            (Asked::Form(_), _) | (_, Some(Key::Suspend | Key::Quit)) => return Ok(Some(stroke)),
            // Ctrl-D leaves here as everywhere: that is no answer, and cancels nothing.
            (_, Some(Key::Interrupt)) => return Ok(Some(stroke)),
            // A letter may be the first of a line: it answers with Enter behind it.
            (_, Some(Key::Letter(_)) | None) => return Ok(Some(stroke)),
            _ if !self.editor.text().is_empty() => return Ok(Some(stroke)),
            (Asked::Permission(_), Some(Key::Escape)) => return Ok(Some(Stroke::Interrupt)),
            (Asked::Permission(_), Some(key)) => {
                if let Some(choice) = view.press(key)? {
                    self.settle(selected(&choice)).await?;
                }
            }
            (Asked::Page(_), Some(Key::Escape)) => self.settle(declined()).await?,
            (Asked::Page(_), _) => {}
        }
        Ok(None)
    }

    /// A line at a question. The letter of an answer is one; all else is a prompt.
    pub(super) async fn answer_line(&mut self, text: &str) -> Result<bool, Failure> {
        let mut letters = text.trim().chars();
        let (Some(letter), None, false) = (letters.next(), letters.next(), self.open.typing) else {
            return Ok(false);
        };
        let answer = match (self.open.waiting.front(), letter, self.talk.show.view()) {
            (Some((_, Asked::Permission(_))), _, Some(view)) => {
                view.press(Key::Letter(letter))?.as_ref().map(selected)
            }
            (Some((_, Asked::Page(_))), 'y', _) => Some(json!({"action": "accept"})),
            (Some((_, Asked::Page(_))), 'n', _) => Some(declined()),
            _ => None,
        };
        match answer {
            Some(answer) => self.settle(answer).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// A line for the field of a form.
    pub(super) async fn fill(&mut self, text: &str) -> Result<(), Failure> {
        let Some((_, Asked::Form(form))) = self.open.waiting.front_mut() else { return Ok(()) };
        let label = form.label();
        let (filled, told) = match form.fill(text) {
            Filled::Next => (None, form.choices()),
            Filled::Done(content) => (Some(content), Vec::new()),
            Filled::Wrong(wrong) => (None, vec![format!("  {wrong}")]),
        };
        if let Some(view) = self.talk.show.view() {
            let said = (!self.plain).then(|| format!("  {label}{text}"));
            view.told(&said.into_iter().chain(told).collect::<Vec<_>>())?;
        }
        match filled {
            Some(content) => self.settle(json!({"action": "accept", "content": content})).await,
            None => self.open_prompt(),
        }
    }

    /// Answers the question on the screen, and asks the next.
    async fn settle(&mut self, answer: Value) -> Result<(), Failure> {
        if let Some((id, _)) = self.open.waiting.pop_front() {
            self.teller.answered += 1;
            self.talk.client.answer(&id, &answer).await;
        }
        self.ask()
    }

    /// A permission was answered elsewhere. Which of several it was, acpd says as well.
    pub(super) fn resolved(&mut self, text: &str) -> Result<(), Failure> {
        let Some(view) = self.talk.show.view() else { return Ok(()) };
        if self.open.waiting.len() != 1 {
            return view.remark(text).map_err(Failure::from);
        }
        view.take_back(text)?;
        self.open.waiting.clear();
        self.open_prompt()
    }

    /// A question needs no answer any more.
    pub(super) fn withdrawn(&mut self, id: &OwnedId) -> Result<(), Failure> {
        let Some(at) = self.open.waiting.iter().position(|(open, _)| open == id) else { return Ok(()) };
        let gone = self.open.waiting.remove(at);
        if at > 0 {
            return Ok(());
        }
        let why = "not asked any more: it was answered elsewhere, or the turn is over";
        if let Some(view) = self.talk.show.view() {
            match gone {
                Some((_, Asked::Permission(_))) => view.take_back(why)?,
                _ => view.told(&[format!("  {why}")])?,
            }
        }
        self.ask()
    }

    /// The turn is being cancelled, and so are its questions.
    pub(super) async fn cancel_questions(&mut self) -> Result<(), Failure> {
        if let Some(view) = self.talk.show.view() {
            view.take_back("not answered: the turn is cancelled")?;
        }
        for (id, asked) in std::mem::take(&mut self.open.waiting) {
            self.teller.answered += 1;
            let answer = match asked {
                Asked::Permission(_) => cancelled(),
                Asked::Form(_) | Asked::Page(_) => json!({"action": "cancel"}),
            };
            self.talk.client.answer(&id, &answer).await;
        }
        Ok(())
    }
}

fn declined() -> Value {
    json!({"action": "decline"})
}
