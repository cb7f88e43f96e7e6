//! The terminal view of `acpd run`: what an agent does, as text for a person.
//!
//! Sans IO: updates and facts come in as JSON, time comes in as durations, text goes to two writers. The answer
//! goes to the first (stdout), everything else to the second (stderr), so that `acpd run ... > file` has
//! the answer and nothing but the answer.
//!
//! Invariants: no control character of an agent reaches a writer; no update, however malformed, is an error (the
//! only errors are the writers'); what is kept of a session is bounded. Not here: where keys come from and answers
//! go, and `--json`, which needs no view.

mod asking;
mod call;
mod calls;
mod columns;
mod diff;
mod ending;
mod event_line;
mod facts;
mod failed;
mod login;
mod menu;
mod output;
mod page;
mod paint;
mod question;
mod record;
mod session_rows;
mod short_ids;
mod spans;
mod talk;
mod tally;
mod wrap;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::clean::{self, line};

pub(crate) use asking::{not_asked, question_lines};
use calls::{Calls, Change};
pub(crate) use columns::{Cell, Column, Cut, Tone, cut_end, table};
use ending::{spoken, spoken_calls};
pub(crate) use event_line::event_line;
use facts::Facts;
pub use failed::{Failed, Step};
pub(crate) use login::{logins, said};
use output::Outputs;
use page::{Block, Page, Paragraph};
pub(crate) use paint::Paint;
pub use paint::Screen;
pub(crate) use question::{Choice, Question};
pub(crate) use record::session_record;
pub(crate) use session_rows::{
    TopRow, hits as hit_list, list as session_list, pruned as pruned_list, top as top_table,
};
pub(crate) use short_ids::{short_ends, short_id};
pub(crate) use spans::{age, byte_count, date_and_time, span};
use tally::Tally;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long one picture of the spinner stands; also the pace at which [`View::tick`] wants to be called.
pub const TICK: Duration = Duration::from_millis(100);

/// Shows one session.
///
/// The order of calls: [`starting`](View::starting), [`started`](View::started), any number of
/// [`update`](View::update)s, [`turn_ended`](View::turn_ended) or [`failed`](View::failed). Any other order gives
/// sensible text too.
pub struct View<O, E> {
    page: Page<O, E>,
    cwd: Option<PathBuf>,
    /// None when the daemon chose one.
    agent: Option<String>,
    phase: Phase,
    elapsed: Duration,
    calls: Calls,
    tally: Tally,
    outputs: Outputs,
    facts: Facts,
    /// The question on the screen.
    asking: Option<asking::Asking>,
    answer: clean::Stream,
    thought: clean::Stream,
    message: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    Turn,
    Over,
}

impl<O: Write, E: Write> View<O, E> {
    /// A view that writes the answer to `out` and the rest to `err`. Paths below `cwd`, the session's directory,
    /// are shown relative to it.
    pub fn new(out: O, err: E, screen: Screen, cwd: Option<PathBuf>) -> Self {
        View {
            page: Page::new(out, err, screen),
            cwd,
            agent: None,
            phase: Phase::Over,
            elapsed: Duration::ZERO,
            calls: Calls::default(),
            tally: Tally::default(),
            outputs: Outputs::default(),
            facts: Facts::default(),
            asking: None,
            answer: clean::Stream::default(),
            thought: clean::Stream::default(),
            message: None,
        }
    }

    /// The agent of that configured name is being started; of an unknown one, when a daemon has the configuration.
    pub fn starting<'a>(&mut self, agent: impl Into<Option<&'a str>>) -> io::Result<()> {
        self.agent = agent.into().map(|agent| line(agent, 60));
        self.phase = Phase::Starting;
        self.tick(Duration::ZERO)
    }

    /// Time went by: `elapsed` since the start or, after [`started`](View::started), since the turn began. Only a
    /// terminal shows it; call it every [`TICK`] or so.
    pub fn tick(&mut self, elapsed: Duration) -> io::Result<()> {
        self.elapsed = elapsed;
        self.show_progress()
    }

    /// The agent answered `initialize` after `took`; `agent_info` is the `agentInfo` of its answer.
    pub fn started(&mut self, agent_info: Option<&Value>, took: Duration) -> io::Result<()> {
        self.runs()?;
        let told =
            |key: &str| Some(line(agent_info?.get(key)?.as_str()?, 60)).filter(|text| !text.is_empty());
        let name = told("title").or_else(|| told("name")).unwrap_or_else(|| self.agent_or("the agent"));
        // A host that has not seen the agent's own answer does not know its version.
        let version = told("version").filter(|version| version != "unknown");
        let version = version.map(|version| format!(" {version}")).unwrap_or_default();
        let said = self.page.paint().dim(format_args!("{name}{version} started in {}", spoken(took)));
        self.page.block(Block::Note, Paragraph::GoesOn, &[said])
    }

    /// The agent runs already.
    pub(crate) fn runs(&mut self) -> io::Result<()> {
        self.phase = Phase::Turn;
        self.elapsed = Duration::ZERO;
        self.page.set_live(Vec::new())
    }

    /// The `update` object of a `session/update`, as raw JSON.
    pub fn update(&mut self, update: &str) -> io::Result<()> {
        match &mut self.asking {
            Some(asking) => match asking.hold(update) {
                Some(held) => self.show_behind_the_question(&held),
                None => Ok(()),
            },
            None => self.show(update),
        }
    }

    /// The same as a value.
    pub(crate) fn take(&mut self, update: &Value) -> io::Result<()> {
        match self.asking {
            Some(_) => self.update(&update.to_string()),
            None => self.update_value(update),
        }
    }

    fn show(&mut self, update: &str) -> io::Result<()> {
        match acpd_wire::read(update.as_bytes()) {
            Ok(update) => self.update_value(&update),
            Err(_) => self.unknown("an update that is not JSON"),
        }
    }

    /// The `update` object of a `session/update`.
    pub fn update_value(&mut self, update: &Value) -> io::Result<()> {
        let paint = self.page.paint();
        let Some(variant) = update.get("sessionUpdate").and_then(Value::as_str) else {
            return self.unknown("an update without a name");
        };
        let remark = match variant {
            "agent_message_chunk" => return self.message(update),
            "agent_thought_chunk" => return self.thinking(update),
            "tool_call" | "tool_call_update" => return self.call(update),
            "plan" => {
                return match self.facts.plan(update, paint) {
                    Some(lines) => self.page.block(Block::Plan, Paragraph::Ends, &lines),
                    None => Ok(()),
                };
            }
            "config_option_update" => {
                let lines = self.facts.options(update, paint);
                return lines.into_iter().try_for_each(|line| self.page.note(line));
            }
            "usage_update" => {
                self.facts.usage(update);
                None
            }
            // The person typed the one, cannot use the second here, and need not read the third.
            "user_message_chunk" | "available_commands_update" | "compaction_summary_chunk" => None,
            "current_mode_update" => self.facts.mode(update, paint),
            "session_info_update" => self.facts.info(update, paint),
            "notice" => facts::notice(update, paint),
            "compaction_update" => facts::compaction(update, paint),
            unknown => return self.unknown(unknown),
        };
        remark.map_or(Ok(()), |remark| self.page.note(remark))
    }

    /// The `params` of a `_sandboxagent/terminal` notification: what a command said, or how it ended.
    pub fn terminal(&mut self, params: &Value) -> io::Result<()> {
        let lines = self.outputs.take(params, self.page.paint());
        if self.asking.is_some() {
            self.outputs.hold(lines);
            return Ok(());
        }
        self.show_output(lines)
    }

    fn show_output(&mut self, lines: Vec<String>) -> io::Result<()> {
        let mut all = self.outputs.held();
        all.extend(lines);
        match all.is_empty() {
            true => Ok(()),
            false => self.page.block(Block::Calls, Paragraph::Ends, &all),
        }
    }

    /// A remark of acpd's own, for instance that a permission was given by the configured mode.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        let said = self.page.paint().dim(line(text, 300));
        self.page.note(said)
    }

    /// Something that the person has to read now, whatever line is unfinished.
    pub fn announce(&mut self, text: &str) -> io::Result<()> {
        let said = self.page.paint().dim(line(text, 1_000));
        self.page.block(Block::Note, Paragraph::GoesOn, &[said])
    }

    /// Nothing more is shown of the turn; its end is unknown.
    pub fn interrupted(&mut self) -> io::Result<()> {
        self.close_turn()
    }

    /// The turn ended with `stop_reason` after `took`.
    pub fn turn_ended(&mut self, stop_reason: &str, took: Duration) -> io::Result<()> {
        self.turn_over(stop_reason, false, took)
    }

    /// The turn ended with `stop_reason` after `took`, behind a wish of this client that it end.
    pub fn cut_turn_ended(&mut self, stop_reason: &str, took: Duration) -> io::Result<()> {
        self.turn_over(stop_reason, true, took)
    }

    fn turn_over(&mut self, stop_reason: &str, is_cut: bool, took: Duration) -> io::Result<()> {
        self.close_turn()?;
        let mut lines = self.tally.lines(self.page.paint());
        lines.extend(ending::turn(stop_reason, is_cut, &self.summary(took), self.page.paint()));
        self.page.block(Block::Ending, Paragraph::Ends, &lines)
    }

    /// The agent's name, when only its own answer has it.
    pub fn named(&mut self, agent: &str) {
        self.agent.get_or_insert_with(|| line(agent, 60));
    }

    fn message(&mut self, update: &Value) -> io::Result<()> {
        let id = update.get("messageId").and_then(Value::as_str).map(|id| &id[..id.floor_char_boundary(256)]);
        let another = id.is_some_and(|id| self.message.as_deref().is_some_and(|before| before != id));
        if another && self.page.answer_open() {
            self.page.answer("\n")?;
        }
        if let Some(id) = id.filter(|_| another || self.message.is_none()) {
            self.message = Some(id.to_owned());
        }
        match content_text(&update["content"]) {
            Ok(text) => self.page.answer(&self.answer.piece(text)),
            Err(placeholder) => self.remark(&placeholder),
        }
    }

    fn thinking(&mut self, update: &Value) -> io::Result<()> {
        match content_text(&update["content"]) {
            Ok(text) => self.page.thought(&self.thought.piece(text)),
            Err(placeholder) => self.remark(&placeholder),
        }
    }

    fn call(&mut self, update: &Value) -> io::Result<()> {
        let paint = self.page.paint();
        match self.calls.take(update, self.cwd.as_deref(), paint) {
            Change::Opened(_) if self.page.is_terminal() => {
                self.page.end_line(Paragraph::Ends)?;
                self.show_progress()
            }
            Change::Opened(call) => {
                self.page.block(Block::Calls, Paragraph::Ends, &[call.line(&paint.notable("●"), paint)])
            }
            Change::Changed => self.show_progress(),
            Change::Finished(call, told) => {
                let lines = call.finished(told, paint);
                self.tally.completed(call);
                self.page.set_live(Vec::new())?;
                self.page.block(Block::Calls, Paragraph::Ends, &lines)?;
                self.show_progress()
            }
            Change::Nothing => Ok(()),
            Change::Unreadable => self.unknown("a tool call without toolCallId"),
        }
    }

    fn unknown(&mut self, name: &str) -> io::Result<()> {
        match self.facts.unknown(name, self.page.paint()) {
            Some(said) => self.page.note(said),
            None => Ok(()),
        }
    }

    /// The live lines: the start, the open tool calls, or that the agent is at work.
    fn show_progress(&mut self) -> io::Result<()> {
        if !self.page.is_terminal() || self.asking.is_some() {
            return Ok(());
        }
        let paint = self.page.paint();
        let frame = self.elapsed.as_millis() / TICK.as_millis() % SPINNER.len() as u128;
        let spinner = paint.notable(SPINNER[usize::try_from(frame).unwrap_or_default()]);
        let seconds = self.elapsed.as_secs();
        let time = if seconds > 0 {
            format!(" {}", spoken(Duration::from_secs(seconds)).replace(".0", ""))
        } else {
            String::new()
        };
        let open = self.calls.open_lines(&spinner, paint);
        let lines = match self.phase {
            Phase::Starting => {
                vec![format!(
                    "{spinner} {}",
                    paint.dim(format_args!("starting {}...{time}", self.agent_or("the agent")))
                )]
            }
            Phase::Turn if open.is_empty() && seconds > 0 => {
                vec![format!("{spinner} {}", paint.dim(format_args!("working...{time}")))]
            }
            Phase::Turn => open,
            Phase::Over => Vec::new(),
        };
        self.page.set_live(lines)
    }

    /// Nothing more comes from the turn: calls that are still open stay so.
    fn close_turn(&mut self) -> io::Result<()> {
        self.take_back("the turn is over")?;
        self.show_output(Vec::new())?;
        self.phase = Phase::Over;
        self.page.set_live(Vec::new())?;
        let paint = self.page.paint();
        let lines = self.calls.abandon(&paint.notable("○"), paint);
        if !lines.is_empty() {
            self.page.block(Block::Calls, Paragraph::Ends, &lines)?;
        }
        self.page.end_line(Paragraph::Ends)
    }

    fn agent_or(&self, unknown: &str) -> String {
        self.agent.clone().unwrap_or_else(|| unknown.to_owned())
    }

    fn summary(&self, took: Duration) -> Vec<String> {
        let calls = spoken_calls(self.calls.total, self.calls.failed);
        std::iter::once(spoken(took)).chain(calls).chain(self.facts.usage.clone()).collect()
    }
}

/// The text of a content block, or what to say instead.
fn content_text(content: &Value) -> Result<&str, String> {
    let text = |pointer: &str| content.pointer(pointer).and_then(Value::as_str);
    let kind = text("/type").unwrap_or("content of no type");
    match kind {
        "text" => text("/text").ok_or_else(|| "[text without text]".to_owned()),
        "resource" => text("/resource/text")
            .ok_or_else(|| format!("[resource {}]", text("/resource/uri").unwrap_or("?"))),
        "resource_link" => text("/uri").ok_or_else(|| "[link without uri]".to_owned()),
        "image" | "audio" => Err(format!("[{kind} {}]", text("/mimeType").unwrap_or_default())),
        other => Err(format!("[{other}]")),
    }
}
