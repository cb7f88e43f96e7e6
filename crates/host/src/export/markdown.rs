//! A session as people read it: what was asked and answered, tool calls, who answered which question, how it ended.
//!
//! Pure: events come in, in order, and text comes out, so that nothing of a long session is held but what is still open. A tool
//! call is told when it is over, or at the end of its turn; with what it and its terminals brought, where that is wanted. A terminal
//! that no call shows is told at the end of a turn. Invariant: no control character of what was said comes out. Not here: thoughts and
//! plans.

mod calls;
mod details;
mod said;

use self::calls::Call;
use self::details::Terminal;
use crate::clock::iso8601;
use crate::spoken::{Chunk, ToolCall, spoken};
use acpd_record::{
    AnsweredBy, Event, ExportHead, Question, QuestionNumber, Resolution, RunNumber, TerminalEnded,
    TerminalNews, TerminalOutput, TerminationInfo, TurnEnded, update_of,
};
use acpd_wire::UpdateKind;
use said::Said;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The longest title, in bytes.
const TITLE: usize = 200;
/// Tool calls, terminals and questions that are remembered while they are open. Of more, the oldest are told as they stand.
const OPEN: usize = 1000;
/// Bytes of what tool calls and terminals brought that are held for those. Of more, the oldest are told as they stand.
const HELD: usize = 16 << 20;

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
    /// Whether it has what tool calls and terminals brought.
    has_details: bool,
    /// Tool calls and terminals by their order.
    calls: BTreeMap<u64, Call>,
    terminals: BTreeMap<u64, Terminal>,
    begun: u64,
    /// What the agent says.
    said: Said,
    questions: BTreeMap<QuestionNumber, Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    title: String,
    /// The ids of the options with their names.
    options: Vec<(String, String)>,
}

/// Without control characters, in one line of at most [`TITLE`] bytes.
fn line(text: &str) -> String {
    line_of(text, TITLE)
}

/// Without control characters, in one line of at most so many bytes.
fn line_of(text: &str, most: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text[..text.floor_char_boundary(most)].trim().to_owned()
}

/// Words in several lines.
fn words(text: &str) -> String {
    let (mut said, mut out) = (Said::default(), String::new());
    said.piece(text.trim_end(), &mut out);
    said.finish(&mut out);
    out
}

/// As code, whatever is in it.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let (fence, gap) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
    format!("{fence}{gap}{text}{gap}{fence}")
}

impl Markdown {
    pub(super) fn new(has_details: bool) -> Self {
        Self { has_details, ..Self::default() }
    }

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
            Event::Terminal(news) if self.has_details => self.see_terminal(news, out),
            Event::TurnEnded(ended) => self.turn_ended(ended, out),
            Event::Ended(end) => self.ended(end, out),
            _ => {}
        }
    }

    /// No event follows.
    pub(super) fn finish(mut self) -> String {
        let mut out = self.head.take().map(|head| Self::head(&head, None)).unwrap_or_default();
        self.tell_calls(&mut out);
        self.tell_terminals(|_| true, &mut out);
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
        self.begun += u64::from(known.is_none());
        let call = self.calls.entry(at).or_insert_with(|| Call::new(&update.tool_call_id, self.has_details));
        call.update(update);
        if call.is_over() {
            self.tell_call(at, out);
        }
        self.tell_oldest(out);
    }

    fn tell_call(&mut self, at: u64, out: &mut String) {
        let Some(call) = self.calls.remove(&at) else { return };
        let (line, details) = call.write();
        self.item(&line, out);
        details.blocks().for_each(|block| self.block(block, out));
        // One that still runs is told later.
        self.tell_terminals(|terminal| terminal.has_ended() && details.terminals.contains(&terminal.id), out);
    }

    fn tell_calls(&mut self, out: &mut String) {
        while let Some(at) = self.calls.keys().next().copied() {
            self.tell_call(at, out);
        }
    }

    fn see_terminal(&mut self, news: &TerminalNews<'_>, out: &mut String) {
        let (TerminalNews::Output(TerminalOutput { terminal_id: id, .. })
        | TerminalNews::Ended(TerminalEnded { terminal_id: id, .. })) = news;
        let known = self.terminals.iter().find(|(_, terminal)| terminal.id == **id).map(|(at, _)| *at);
        let at = known.unwrap_or(self.begun);
        self.begun += u64::from(known.is_none());
        let terminal = self.terminals.entry(at).or_insert_with(|| Terminal::new(id));
        match news {
            TerminalNews::Output(output) => terminal.write(output),
            TerminalNews::Ended(ended) => terminal.end(ended),
        }
        self.tell_oldest(out);
    }

    fn tell_terminals(&mut self, which: impl Fn(&Terminal) -> bool, out: &mut String) {
        for (_, terminal) in self.terminals.extract_if(.., |_, terminal| which(terminal)).collect::<Vec<_>>()
        {
            let (line, output) = terminal.write_out();
            self.item(&line, out);
            output.iter().for_each(|output| self.block(output, out));
        }
    }

    /// Tells the oldest tool calls, then terminals, as they stand, while too much is remembered.
    fn tell_oldest(&mut self, out: &mut String) {
        while self.calls.len() > OPEN || self.terminals.len() > OPEN || self.held() > HELD {
            let call = self.calls.keys().next().copied().filter(|_| self.terminals.len() <= OPEN);
            match (call, self.terminals.values().next().map(|terminal| terminal.id.clone())) {
                (Some(at), _) => self.tell_call(at, out),
                (None, Some(id)) => self.tell_terminals(|terminal| terminal.id == id, out),
                (None, None) => return,
            }
        }
    }

    /// Bytes that are held of what tool calls and terminals brought.
    fn held(&self) -> usize {
        let calls: usize = self.calls.values().map(Call::held).sum();
        calls + self.terminals.values().map(Terminal::held).sum::<usize>()
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
        self.tell_terminals(Terminal::has_ended, out);
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
        self.tell_terminals(|_| true, out);
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
