//! A session as people read it: what was asked and answered, tool calls, who answered which question, how it ended.
//!
//! Pure: events come in, in order, and text comes out, so that nothing of a long session is held but what is still open. A tool
//! call is told when it is over, or at the end of its turn. Invariant: no control character of what was said comes out. Not
//! here: thoughts, plans, and what tools read and wrote.

mod said;

use crate::clock::iso8601;
use crate::spoken::{Chunk, ToolCall, spoken};
use acpd_record::{
    AnsweredBy, Event, ExportHead, Question, QuestionNumber, Resolution, RunNumber, TerminationInfo,
    TurnEnded, update_of,
};
use acpd_wire::UpdateKind;
use said::Said;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The longest title, in bytes.
const TITLE: usize = 200;
/// Tool calls and questions that are remembered while they are open. Of more, the oldest are told as they stand.
const OPEN: usize = 1000;

/// What the text is in the middle of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// The end of a block: an empty line is between it and the next.
    #[default]
    Block,
    /// What the agent says.
    Agent,
    /// A list of what happened beside that.
    List,
}

/// Writes events one after the other.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    /// What stands before the first event, until it is known what the session is called.
    head: Option<ExportHead>,
    at: At,
    runs: RunNumber,
    /// Titles and states of tool calls, by their order, with their ids.
    calls: BTreeMap<u64, Call>,
    begun: u64,
    /// What the agent says.
    said: Said,
    questions: BTreeMap<QuestionNumber, Asked>,
}

#[derive(Debug)]
struct Call {
    id: String,
    title: String,
    status: String,
    /// Its command, else its path, as far as the agent says them.
    about: Option<String>,
}

#[derive(Debug, Default)]
struct Asked {
    title: String,
    /// The ids of the options with their names.
    options: Vec<(String, String)>,
}

/// Without control characters, in one line of at most [`TITLE`] bytes.
fn line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text[..text.floor_char_boundary(TITLE)].trim().to_owned()
}

/// Words in several lines.
fn words(text: &str) -> String {
    let (mut said, mut out) = (Said::default(), String::new());
    said.piece(text.trim_end(), &mut out);
    said.finish(&mut out);
    out
}

/// What a tool call is about: its command, or the first path.
fn about(update: &ToolCall<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Input<'a> {
        #[serde(borrow, default, alias = "cmd")]
        command: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Location<'a> {
        #[serde(borrow)]
        path: Cow<'a, str>,
    }
    let input = update.raw_input.and_then(|input| serde_json::from_str::<Input<'_>>(input.get()).ok());
    let command = input.and_then(|input| input.command).and_then(|command| {
        let one = serde_json::from_str::<String>(command.get()).ok();
        one.or_else(|| Some(serde_json::from_str::<Vec<String>>(command.get()).ok()?.join(" ")))
    });
    let places = || serde_json::from_str::<Vec<Location<'_>>>(update.locations?.get()).ok();
    let path = || places()?.into_iter().next().map(|location| location.path.into_owned());
    command.or_else(path).map(|about| line(&about)).filter(|about| !about.is_empty())
}

/// As code, whatever is in it.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let (fence, gap) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
    format!("{fence}{gap}{text}{gap}{fence}")
}

impl Markdown {
    /// Begins the page. Without a title it waits for the first prompt, which is the heading then.
    pub(super) fn begin(&mut self, head: ExportHead) -> String {
        if head.title.as_deref().is_some_and(|title| !line(title).is_empty()) {
            return Self::head(&head, None);
        }
        self.head = Some(head);
        String::new()
    }

    /// What stands before the first event.
    fn head(head: &ExportHead, first_prompt: Option<&str>) -> String {
        let ExportHead { session_id, agent, cwd, created_ms, title, forked_from, .. } = head;
        let titles = title.as_deref().into_iter().chain(first_prompt);
        let title = titles.map(line).find(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| format!("Session {session_id}"));
        let fork =
            forked_from.as_ref().map(|source| format!("- Forked from: {source}\n")).unwrap_or_default();
        let (agent, cwd, created) = (line(agent), line(cwd), iso8601(*created_ms));
        format!(
            "# {title}\n\n- Session: {session_id}\n- Agent: {agent}\n- Directory: {cwd}\n- Created: {created}\n{fork}"
        )
    }

    /// Takes the next event.
    pub(super) fn see(&mut self, event: &Event<'_>, out: &mut String) {
        let before = out.len();
        self.tell(event, out);
        if out.len() > before
            && let Some(head) = self.head.take()
        {
            let prompt =
                if let Event::Prompt(prompt) = event { spoken(prompt.prompt) } else { String::new() };
            out.insert_str(before, &Self::head(&head, Some(&prompt)));
        }
    }

    fn tell(&mut self, event: &Event<'_>, out: &mut String) {
        match event {
            Event::RunStarted(run) => {
                self.runs = self.runs.next();
                if self.runs > RunNumber(1) {
                    let by = run.by.as_deref().map(|by| format!(" by {}", line(by))).unwrap_or_default();
                    self.item(&format!("Taken up again{by}"), out);
                }
            }
            Event::Prompt(prompt) => {
                let said = words(&spoken(prompt.prompt));
                self.block(&format!("## User ({})\n\n{said}", line(&prompt.by)), out);
            }
            Event::Update(message) => match message.kind() {
                UpdateKind::AgentMessageChunk => {
                    let chunk = update_of::<Chunk<'_>>(message.line());
                    self.say(&chunk.map(|chunk| chunk.content.spoken()).unwrap_or_default(), out);
                }
                UpdateKind::ToolCall | UpdateKind::ToolCallUpdate => {
                    if let Some(call) = update_of(message.line()) {
                        self.see_call(&call, out);
                    }
                }
                _ => {}
            },
            Event::PermissionRequested(question) | Event::ElicitationRequested(question) => {
                self.asked(question);
            }
            Event::PermissionResolved(resolution) | Event::ElicitationResolved(resolution) => {
                self.answered(resolution, out);
            }
            Event::CancelRequested(cancel) => {
                self.item(&format!("Cancel requested by {}", line(&cancel.by)), out);
            }
            Event::TurnEnded(ended) => self.turn_ended(ended, out),
            Event::Ended(end) => self.ended(end, out),
            _ => {}
        }
    }

    /// No event follows.
    pub(super) fn finish(mut self) -> String {
        let mut out = self.head.take().map(|head| Self::head(&head, None)).unwrap_or_default();
        self.tell_calls(&mut out);
        self.said.finish(&mut out);
        if self.at == At::Agent {
            out.push('\n');
        }
        out
    }

    /// Text of several lines, by itself.
    fn block(&mut self, block: &str, out: &mut String) {
        self.said.finish(out);
        let before = if self.at == At::Agent { "\n\n" } else { "\n" };
        out.extend([before, block, "\n"]);
        self.at = At::Block;
    }

    fn item(&mut self, item: &str, out: &mut String) {
        self.said.finish(out);
        let before = match self.at {
            At::List => "",
            At::Block => "\n",
            At::Agent => "\n\n",
        };
        out.extend([before, "- ", item, "\n"]);
        self.at = At::List;
    }

    fn say(&mut self, said: &str, out: &mut String) {
        if said.is_empty() {
            return;
        }
        if self.at != At::Agent {
            out.push_str("\n## Agent\n\n");
            self.at = At::Agent;
        }
        self.said.piece(said, out);
    }

    fn see_call(&mut self, update: &ToolCall<'_>, out: &mut String) {
        let known = self.calls.iter().find(|(_, call)| call.id == *update.tool_call_id).map(|(at, _)| *at);
        let at = known.unwrap_or(self.begun);
        if known.is_none() {
            let (title, status) = ("without a title".to_owned(), "pending".to_owned());
            self.calls.insert(at, Call { id: update.tool_call_id.to_string(), title, status, about: None });
            self.begun += 1;
        }
        let Some(call) = self.calls.get_mut(&at) else { return };
        if let Some(title) = update.title.as_deref() {
            call.title = line(title);
        }
        call.about = about(update).or(call.about.take());
        if let Some(status) = update.status.as_deref() {
            call.status = line(status);
        }
        if matches!(&*call.status, "completed" | "failed") {
            self.tell_call(at, out);
        } else if self.calls.len() > OPEN
            && let Some(oldest) = self.calls.keys().next().copied()
        {
            self.tell_call(oldest, out);
        }
    }

    fn tell_call(&mut self, at: u64, out: &mut String) {
        if let Some(Call { title, status, about, .. }) = self.calls.remove(&at) {
            let about = about.filter(|about| !title.contains(about.as_str()));
            let about = about.map(|about| format!(" ({})", code(&about))).unwrap_or_default();
            self.item(&format!("Tool call: {title}{about}: {status}"), out);
        }
    }

    fn tell_calls(&mut self, out: &mut String) {
        while let Some(at) = self.calls.keys().next().copied() {
            self.tell_call(at, out);
        }
    }

    fn asked(&mut self, question: &Question<'_>) {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow, default)]
            tool_call: Option<Titled<'a>>,
            #[serde(borrow, default)]
            message: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            options: Vec<Offered<'a>>,
        }
        #[derive(Deserialize)]
        struct Titled<'a> {
            #[serde(borrow, default)]
            title: Option<Cow<'a, str>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Offered<'a> {
            #[serde(borrow)]
            option_id: Cow<'a, str>,
            #[serde(borrow)]
            name: Cow<'a, str>,
        }
        let params = acpd_wire::member(question.message, "params");
        let params = params.and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
        let Params { tool_call, message, options } = params.unwrap_or_default();
        let title = tool_call.and_then(|call| call.title).or(message);
        let title = title.map_or_else(|| "without a title".to_owned(), |title| line(&title));
        let options = options.iter().map(|option| (option.option_id.to_string(), line(&option.name)));
        self.questions.insert(question.request, Asked { title, options: options.collect() });
        if self.questions.len() > OPEN {
            self.questions.pop_first();
        }
    }

    fn answered(&mut self, resolution: &Resolution<'_>, out: &mut String) {
        #[derive(Default, Deserialize)]
        struct Answer<'a> {
            #[serde(borrow, default)]
            outcome: Option<Outcome<'a>>,
            #[serde(borrow, default)]
            action: Option<Cow<'a, str>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Outcome<'a> {
            #[serde(borrow, default)]
            outcome: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            option_id: Option<Cow<'a, str>>,
        }
        let Some(Asked { title, options }) = self.questions.remove(&resolution.request) else { return };
        let answer =
            resolution.result.and_then(|result| serde_json::from_str::<Answer<'_>>(result.get()).ok());
        let Answer { outcome, action } = answer.unwrap_or_default();
        let (outcome, chosen) = outcome.map_or((None, None), |outcome| (outcome.outcome, outcome.option_id));
        let named = chosen.as_ref().map(|id| {
            let option = options.iter().find(|(option, _)| option == id);
            option.map_or_else(|| line(id), |(_, name)| name.clone())
        });
        let said =
            named.or(action.or(outcome).map(|word| line(&word))).unwrap_or_else(|| "answered".to_owned());
        let by = match &resolution.by {
            Some(AnsweredBy::Client(client)) => format!(" (by {})", line(client)),
            Some(AnsweredBy::Mode(mode)) => format!(" (by mode {})", line(mode)),
            Some(AnsweredBy::Cause(cause)) => format!(" (without a client: {})", line(cause)),
            None => String::new(),
        };
        self.item(&format!("Question: {title}: {said}{by}"), out);
    }

    fn turn_ended(&mut self, ended: &TurnEnded<'_>, out: &mut String) {
        #[derive(Deserialize)]
        struct Failed<'a> {
            #[serde(borrow)]
            message: Cow<'a, str>,
        }
        self.tell_calls(out);
        let failed = ended.error.map(|error| serde_json::from_str::<Failed<'_>>(error.get()).ok());
        match (failed, ended.stop_reason.as_deref()) {
            (Some(failed), _) => {
                let why = failed.map(|failed| format!(": {}", line(&failed.message))).unwrap_or_default();
                self.item(&format!("The turn failed{why}"), out);
            }
            (None, Some(reason)) if reason != "end_turn" => {
                self.item(&format!("The turn ended: {}", line(reason)), out);
            }
            _ => {}
        }
    }

    fn ended(&mut self, end: &TerminationInfo, out: &mut String) {
        self.tell_calls(out);
        let cause = end.cause.map(|cause| format!(" ({})", cause.as_str())).unwrap_or_default();
        let by = end.initiator.as_deref().map(|by| format!(" by {}", line(by))).unwrap_or_default();
        let why = end.message.as_deref().map(|why| format!(": {}", line(why))).unwrap_or_default();
        let reason = end.reason.as_str();
        let at = line(&end.ended_at);
        self.item(&format!("Ended {at}: {reason}{by}{cause}{why}"), out);
    }
}

#[cfg(test)]
mod tests;
