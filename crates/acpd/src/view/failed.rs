//! A start, a login or a turn that failed: what was answered, and what can be done.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::Value;

use super::page::{Block, Paragraph};
use super::{View, ending};
use crate::clean::line;

/// What an agent, or acpd, answered instead of what it was asked for.
pub struct Failed<'a> {
    /// How far it had come.
    pub step: Step,
    /// The error's message.
    pub message: &'a str,
    /// What its data says beside.
    pub details: Option<String>,
    /// The session's `terminationInfo`, when its end is the reason.
    pub ended: Option<&'a Value>,
    /// The ways to log in.
    pub logins: &'a [String],
    /// What to type for a login, where the agent is one that has a name.
    pub command: Option<String>,
}

/// What failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The start of the agent or of the session: no turn had begun.
    Start,
    /// The session could not be gone on with: no turn had begun.
    Resume,
    /// The session could not be set as asked: no turn had begun.
    Setting,
    /// The agent does nothing without a login.
    Login,
    /// The turn.
    Turn,
}

impl Step {
    fn failed(self) -> &'static str {
        match self {
            Self::Start => "no session was started",
            Self::Resume => "the session cannot be continued",
            Self::Setting => "the session cannot be set as asked",
            Self::Login => "the agent wants a login",
            Self::Turn => "the turn failed",
        }
    }
}

impl<O: Write, E: Write> View<O, E> {
    /// What was asked for was answered with an error after `took`.
    pub fn failed(&mut self, failed: &Failed<'_>, took: Duration) -> io::Result<()> {
        self.close_turn()?;
        let paint = self.page.paint();
        let ended = failed.ended;
        let mut said = ended.map(|info| ending::stderr(info, paint)).unwrap_or_default();
        said.extend(self.tally.lines(paint));
        let facts = paint.dim(format_args!("after {}", self.summary(took).join(" · ")));
        let message = line(failed.message, 300);
        let what = paint.bold(format_args!("{}: {message}", failed.step.failed()));
        said.push(format!("{} {what}", paint.bad("✗")));
        said.push(format!("  {facts}"));
        said.extend(failed.details.iter().map(|details| format!("  {details}")));
        let agent = self.agent_or("NAME");
        // The record often says a part of it, which a cut must not hide.
        let told = line(failed.message, 2_000);
        said.extend(ended.map(|info| ending::session(info, &agent, Some(&told), paint)).unwrap_or_default());
        if failed.step == Step::Login {
            said.extend(ending::logins(failed.logins, failed.command.as_deref(), &agent, paint));
        }
        self.page.block(Block::Ending, Paragraph::Ends, &said)
    }
}
