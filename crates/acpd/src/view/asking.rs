//! The question on the screen: shown, moved in, answered, taken back.
//!
//! Owned by the view, one at a time. Invariant: while it is there nothing else moves; updates that come meanwhile are
//! held and shown after it, or behind it when there are too many to hold.

use std::io::{self, Write};
use std::path::Path;

use super::call::Call;
use super::menu::{Menu, Pressed};
use super::page::{Block, Paragraph};
use super::paint::Paint;
use super::question::{Choice, Question};
use super::tally::spoken_answer;
use super::{Screen, View};
use crate::clean::line;
use crate::keyboard::Key;
use serde_json::Value;

/// Bytes of updates that are held. An agent rarely goes on while it asks; one that does should not fill memory while
/// the person is at lunch.
const HELD: usize = 256 * 1024;
/// Rows that details get at least, however small the screen is.
const DETAILS: usize = 4;
/// Rows of details where nothing has to fit a screen.
const ELSEWHERE: usize = 40;
/// Rows that are not the details' nor the menu's: the title, the line of the answer, and some of what was before.
const AROUND: usize = 5;

pub(super) struct Asking {
    question: Question,
    what: String,
    menu: Menu,
    rows: usize,
    held: Vec<String>,
    held_bytes: usize,
}

impl Asking {
    /// Holds an update back; gives them all when they are too many.
    pub(super) fn hold(&mut self, update: &str) -> Option<Vec<String>> {
        self.held_bytes += update.len();
        self.held.push(update.to_owned());
        (self.held_bytes > HELD).then(|| {
            self.held_bytes = 0;
            std::mem::take(&mut self.held)
        })
    }

    /// The options, a line each, for a screen that is not changed.
    pub(super) fn options(&self) -> Vec<String> {
        self.menu.lines(self.question.options(), usize::MAX, Paint::new(false))
    }

    /// The same where an answer is a line.
    pub(super) fn plain_options(&self) -> Vec<String> {
        let mut lines = self.menu.plain_lines(self.question.options());
        lines.push("  a letter or a name, then Enter; Ctrl-C cancels the turn".to_owned());
        lines
    }

    /// Rows of the menu: all but two, so that it can be taken off the screen.
    fn menu_rows(&self) -> usize {
        self.rows.saturating_sub(2)
    }
}

impl<O: Write, E: Write> View<O, E> {
    /// Asks a question on a screen of so many rows. It is there until [`press`](Self::press) gives its answer or
    /// [`take_back`](Self::take_back) takes it away; the next one has to wait for that.
    pub(crate) fn ask(&mut self, question: Question, rows: usize) -> io::Result<()> {
        let paint = self.page.paint();
        let call = self.calls.asked(&question.call, self.cwd.as_deref(), paint);
        let menu = Menu::new(question.options());
        let asking = Asking { what: call.name(), question, menu, rows, held: Vec::new(), held_bytes: 0 };
        let menu_rows = (asking.question.options().len() + 1).min(asking.menu_rows());
        let room = rows.saturating_sub(menu_rows + AROUND).max(DETAILS);
        let (lines, whole) = call.question(room, paint);
        if whole {
            self.calls.told(&call);
        }
        self.page.set_live(Vec::new())?;
        self.page.block(Block::Question, Paragraph::Ends, &lines)?;
        self.asking = Some(asking);
        self.draw_menu()
    }

    /// A key was pressed. Gives the answer, if that was one; then the question is gone.
    pub(crate) fn press(&mut self, key: Key) -> io::Result<Option<Choice>> {
        let Some(asking) = &mut self.asking else { return Ok(None) };
        match asking.menu.press(key) {
            Pressed::Chosen(at) => {
                let choice = asking.question.options().get(at).cloned();
                self.choose(choice)
            }
            Pressed::Moved => self.draw_menu().map(|()| None),
            Pressed::Nothing => Ok(None),
        }
    }

    /// A line was written. Gives the answer, if the line names an option; then the question is gone.
    pub(crate) fn answer_by_name(&mut self, said: &str) -> io::Result<Option<Choice>> {
        let choice = self.asking.as_ref().and_then(|asking| asking.question.meant(said.trim()).cloned());
        self.choose(choice)
    }

    fn choose(&mut self, choice: Option<Choice>) -> io::Result<Option<Choice>> {
        let (Some(asking), Some(choice)) = (&self.asking, choice) else { return Ok(None) };
        let answer = spoken_answer(choice.kind);
        let paint = self.page.paint();
        let mark = match answer {
            "allowed" => paint.good("✓"),
            "refused" => paint.bad("✗"),
            _ => paint.notable("·"),
        };
        self.tally.answered(answer, &asking.what, &choice.name);
        self.close_question(format!("  {mark} {answer}: {}", choice.name))?;
        Ok(Some(choice))
    }

    /// The question needs no answer any more.
    pub(crate) fn take_back(&mut self, why: &str) -> io::Result<()> {
        let paint = self.page.paint();
        match self.asking {
            Some(_) => self.close_question(format!("  {} {}", paint.notable("○"), line(why, 200))),
            None => Ok(()),
        }
    }

    /// The screen is for another use for a while.
    pub(crate) fn leave_screen(&mut self) -> io::Result<()> {
        self.page.set_menu(Vec::new())
    }

    /// The screen is ours again, and may show anything.
    pub(crate) fn back_on_screen(&mut self) -> io::Result<()> {
        self.page.forget_drawn();
        self.draw_menu()
    }

    /// A question without a person to ask was answered with `choice`, if there was one that refuses.
    pub(crate) fn not_asked(
        &mut self,
        question: &Question,
        choice: Option<&Choice>,
        why: &str,
    ) -> io::Result<()> {
        let paint = self.page.paint();
        let call = self.calls.asked(&question.call, self.cwd.as_deref(), paint);
        let [said, reason] = refusal(&call, question, choice, why);
        if let Some(choice) = choice {
            self.tally.answered("refused", &call.name(), &choice.name);
        }
        let lines = [format!("{} {said}", paint.bad("✗")), format!("  {reason}")];
        self.page.block(Block::Note, Paragraph::GoesOn, &lines)
    }

    /// Updates that cannot be held any longer: the menu goes under them.
    pub(super) fn show_behind_the_question(&mut self, held: &[String]) -> io::Result<()> {
        let asking = self.asking.take();
        self.page.set_live(Vec::new())?;
        held.iter().try_for_each(|update| self.show(update))?;
        self.page.set_live(Vec::new())?;
        self.page.end_line(Paragraph::Ends)?;
        self.asking = asking;
        self.draw_menu()
    }

    fn draw_menu(&mut self) -> io::Result<()> {
        let paint = self.page.paint();
        let Some(asking) = &self.asking else { return Ok(()) };
        let lines = asking.menu.lines(asking.question.options(), asking.menu_rows(), paint);
        self.page.set_menu(lines)
    }

    fn close_question(&mut self, said: String) -> io::Result<()> {
        let Some(asking) = self.asking.take() else { return Ok(()) };
        self.page.set_live(Vec::new())?;
        self.page.block(Block::Question, Paragraph::Ends, &[said])?;
        asking.held.iter().try_for_each(|update| self.show(update))?;
        self.show_progress()
    }
}

/// The lines that show an open question to a person who is to answer it elsewhere. Some agents send the change only in the
/// tool call that they ask for: `known` are the open ones.
pub(crate) fn question_lines(
    question: &Question,
    known: &[Value],
    cwd: &Path,
    screen: Screen,
) -> Vec<String> {
    let (paint, cwd) = (Paint::new(screen.colour), Some(cwd).filter(|cwd| !cwd.as_os_str().is_empty()));
    let id = |call: &Value| call["toolCallId"].as_str().map(str::to_owned);
    let before = id(&question.call).and_then(|own| known.iter().find(|call| id(call).as_ref() == Some(&own)));
    let mut call = super::Calls::default().asked(before.unwrap_or(&question.call), cwd, paint);
    call.merge(&question.call, cwd, paint);
    call.question(ELSEWHERE, paint).0
}

/// What is said of a question without a person to ask, for a reader without a view.
pub(crate) fn not_asked(question: &Question, choice: Option<&Choice>, why: &str) -> String {
    let call = super::Calls::default().asked(&question.call, None, Paint::new(false));
    refusal(&call, question, choice, why).join(": ")
}

fn refusal(call: &Call, question: &Question, choice: Option<&Choice>, why: &str) -> [String; 2] {
    let said = match choice {
        Some(choice) => format!("refused: {} ({})", call.name(), choice.name),
        None if question.is_which() => {
            let names: Vec<&str> = question.options().iter().map(|choice| choice.name.as_str()).collect();
            format!("not answered: {} (which of: {})", call.name(), line(&names.join(", "), 400))
        }
        None => format!("not allowed: {} (the agent offers no way to refuse)", call.name()),
    };
    let hint = match question.allowed_by() {
        Some(mode) => format!("; `--permission-mode {mode}` would allow it"),
        None => String::new(),
    };
    [said, format!("nobody could be asked: {why}{hint}")]
}
