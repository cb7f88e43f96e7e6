//! The screen of a chat: the line that is written, what it can become, and what was before.
//!
//! Not here: what is shown of turns (`telling.rs`) and questions (`asked.rs`).

use super::completing::{LISTED, complete};
use super::form::Form;
use super::room::Room;
use super::words::Word;
use crate::editor::layout;
use crate::exit::Failure;
use crate::streams::stdout;
use crate::view::short_id;
use rustix::process::Signal;
use std::io::Write;

/// What stands before the line.
const LABEL: &str = "› ";
/// The same where nothing moves.
const PLAIN_LABEL: &str = "> ";

impl Room<'_> {
    /// Shows the end of the history; from here on things are shown as they happen.
    pub(super) fn show_past(&mut self) -> Result<(), Failure> {
        let Some(past) = self.past.take() else { return Ok(()) };
        let (lines, cut) = past.finish();
        let session = short_id(self.talk.session.as_deref().unwrap_or_default());
        if let Some(view) = self.talk.show.view() {
            let earlier = cut.then(|| format!("… what was before: acpd sessions events {session}"));
            view.told(&earlier.into_iter().collect::<Vec<_>>())?;
            view.past(&lines)?;
        }
        self.open_prompt()
    }

    pub(super) fn complete(&mut self) -> Result<(), Failure> {
        let before = &self.editor.text()[..self.editor.cursor()];
        let own = Word::beside(&self.teller.commands).map(|(name, _)| name.to_owned());
        let commands: Vec<String> = self.teller.commands.iter().cloned().chain(own).collect();
        let Some(completion) = complete(before, &commands, self.chatting.files()) else {
            return Ok(());
        };
        let changes = before[completion.start..] != completion.text;
        self.editor.complete(completion.start, &completion.text);
        if changes || completion.choices.is_empty() {
            return Ok(());
        }
        let mut listed = completion.choices.iter().take(LISTED).cloned().collect::<Vec<_>>().join("  ");
        if completion.choices.len() > LISTED {
            listed.push_str(&format!("  and {} more", completion.choices.len() - LISTED));
        }
        self.talk.announce(&listed)
    }

    /// Leaves the terminal to the shell until it goes on with this process.
    pub(super) fn stop(&mut self, signal: Signal) -> Result<(), Failure> {
        if let Some(view) = self.talk.show.view() {
            view.leave_screen()?;
            view.input(None)?;
        }
        self.brackets(false)?;
        self.keyboard.stop(signal)?;
        self.back()
    }

    /// The screen is ours again, and may show anything.
    pub(super) fn back(&mut self) -> Result<(), Failure> {
        self.brackets(true)?;
        match self.talk.show.view() {
            Some(view) => view.drawn_anew().map_err(Failure::from),
            None => Ok(()),
        }
    }

    /// Shows the line, where it can be.
    pub(super) fn draw(&mut self) -> Result<(), Failure> {
        if self.plain || self.past.is_some() {
            return Ok(());
        }
        let (columns, rows) = self.keyboard.size();
        let label = match self.open.form() {
            Some(form) if !self.open.is_typing() => form.label(),
            _ => LABEL.to_owned(),
        };
        let input = layout(&label, self.editor.text(), self.editor.cursor(), columns, rows / 2);
        match self.talk.show.view() {
            Some(view) => view.input(Some((input, columns))).map_err(Failure::from),
            None => Ok(()),
        }
    }

    /// Says that a line can be written, where it is not on the screen anyway.
    pub(super) fn open_prompt(&mut self) -> Result<(), Failure> {
        if !self.plain || (self.core.is_busy() && self.open.waiting.is_empty()) {
            return Ok(());
        }
        let label = self.open.form().map_or_else(|| PLAIN_LABEL.to_owned(), Form::label);
        let mut out = stdout();
        write!(out, "{label}").and_then(|()| out.flush()).map_err(Failure::from)
    }

    /// Whether the terminal puts brackets around what is pasted.
    pub(super) fn brackets(&self, on: bool) -> Result<(), Failure> {
        if self.plain {
            return Ok(());
        }
        let mut out = stdout();
        write!(out, "\u{1b}[?2004{}", if on { 'h' } else { 'l' })
            .and_then(|()| out.flush())
            .map_err(Failure::from)
    }
}
