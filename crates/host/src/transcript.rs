//! The transcript of a session: its history as text, for an agent that cannot resume or load it (contract
//! 1.4, the last fallback).
//!
//! Pure and bounded: events come in, one after the other, and only the end of the conversation is held. What the user
//! and the agent said is in it, and of tool calls the title and how they ended; thoughts, plans and what tools read or
//! wrote are not. Not here: when an agent is given one.

use crate::spoken::{Chunk, ToolCall, spoken};
use acpd_record::{Event, Json, SessionId, TranscriptFacts, update_of};
use acpd_wire::UpdateKind;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::VecDeque;

/// The most that an agent is given, in bytes of text: some 16,000 tokens, which fits beside a prompt everywhere.
const LIMIT: usize = 64 * 1024;
/// How much the last message may grow before its beginning is dropped; more than [`LIMIT`], so that it is seldom done.
const SLACK: usize = 4 * LIMIT;

/// The longest title of a tool call, in bytes.
const TITLE: usize = 200;

const INTRODUCTION: &str = "This is a transcript of the conversation so far, kept by the client. You held it in an \
    earlier session that cannot be resumed. Take it as context: it asks nothing of you, and what it tells of has \
    happened.";
/// The end of one that is given as text: agents put the texts of a prompt one behind the other, without anything between.
const END: &str = "\n---\n\nThis is the end of the transcript. What the user says now follows.\n\n";
const CUT_WITHIN: &str = "[the beginning of this message was left out]\n";

/// One message of the conversation, or one tool call.
#[derive(Debug, Default)]
struct Message {
    heading: String,
    text: String,
    /// The id of a tool call.
    call: Option<String>,
    /// Its beginning was dropped.
    cut: bool,
}

impl Message {
    /// About what it holds in memory.
    fn weight(&self) -> usize {
        self.heading.len() + self.text.len() + size_of::<Self>()
    }

    fn shown(&self) -> String {
        let cut = if self.cut { CUT_WITHIN } else { "" };
        format!("\n\n## {}\n\n{cut}{}", self.heading, self.text.trim_end()).trim_end().to_owned()
    }

    /// Keeps the end of the text.
    fn keep_last(&mut self, bytes: usize) {
        if self.text.len() > bytes {
            let from = self.text.ceil_char_boundary(self.text.len() - bytes);
            self.text.drain(..from);
            self.cut = true;
        }
    }
}

/// Collects a [`Transcript`] from events.
#[derive(Debug, Default)]
pub(crate) struct TranscriptRecorder {
    messages: VecDeque<Message>,
    /// The weight of all but the last.
    held: usize,
    /// Messages that were dropped from the front.
    omitted: u64,
}

/// A conversation as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transcript {
    text: String,
    messages: u64,
    omitted: u64,
    /// The beginning of the first message was left out.
    cut: bool,
}

impl TranscriptRecorder {
    /// Takes the next event of the session.
    pub(crate) fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::Prompt(prompt) => self.see_prompt(prompt.prompt),
            Event::Update(message) => match message.kind() {
                UpdateKind::AgentMessageChunk => {
                    let chunk = update_of::<Chunk<'_>>(message.line());
                    self.append("Agent", &chunk.map(|chunk| chunk.content.spoken()).unwrap_or_default());
                }
                UpdateKind::ToolCall | UpdateKind::ToolCallUpdate => {
                    if let Some(call) = update_of(message.line()) {
                        self.see_call(&call);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn see_prompt(&mut self, blocks: &RawValue) {
        self.begin(Message { heading: "User".to_owned(), ..Message::default() });
        self.append("User", &spoken(blocks));
    }

    fn see_call(&mut self, update: &ToolCall<'_>) {
        let id = &*update.tool_call_id;
        let known = self.messages.iter().rposition(|message| message.call.as_deref() == Some(id));
        let place = known.unwrap_or_else(|| {
            self.begin(Message { call: Some(id.to_owned()), ..Message::default() });
            self.messages.len() - 1
        });
        let call = &mut self.messages[place];
        if let Some(title) = update.title.as_deref() {
            let title = &title[..title.floor_char_boundary(TITLE)];
            call.heading = format!("Tool call: {}", title.replace(['\n', '\r'], " "));
        } else if call.heading.is_empty() {
            "Tool call".clone_into(&mut call.heading);
        }
        if let Some(status) = update.status.as_deref() {
            status[..status.floor_char_boundary(TITLE)].clone_into(&mut call.text);
        }
    }

    /// Text goes on the message before, if the same side said that.
    fn append(&mut self, heading: &str, text: &str) {
        if !self.messages.back().is_some_and(|last| last.call.is_none() && last.heading == heading) {
            self.begin(Message { heading: heading.to_owned(), ..Message::default() });
        }
        let last = self.messages.back_mut().expect("one was begun");
        last.text.push_str(text);
        if last.text.len() > SLACK {
            last.keep_last(LIMIT);
        }
    }

    fn begin(&mut self, message: Message) {
        // The last one still grew; now it is complete.
        self.held += self.messages.back().map_or(0, Message::weight);
        self.messages.push_back(message);
        while self.held > LIMIT + SLACK {
            let Some(first) = self.messages.pop_front() else { break };
            self.held = self.held.saturating_sub(first.weight());
            self.omitted += 1;
        }
    }

    /// The end of the conversation, cut between messages; within one only if the last alone is too long. None when
    /// nothing was said.
    pub(crate) fn finish(self) -> Option<Transcript> {
        self.finish_within(LIMIT)
    }

    fn finish_within(mut self, limit: usize) -> Option<Transcript> {
        let mut shown: VecDeque<String> = VecDeque::new();
        let (mut bytes, mut cut) = (0, false);
        let all = self.messages.len();
        // What precedes a message without its beginning would be told as if nothing stood between.
        while !cut && let Some(mut message) = self.messages.pop_back() {
            let mut text = message.shown();
            if shown.is_empty() && text.len() > limit {
                let around = text.len() - message.text.len() + CUT_WITHIN.len();
                message.keep_last(limit.saturating_sub(around));
                text = message.shown();
            } else if bytes + text.len() > limit {
                break;
            }
            bytes += text.len();
            cut = message.cut;
            shown.push_front(text);
        }
        let messages = shown.len() as u64;
        let omitted = self.omitted + all as u64 - messages;
        let mut text = INTRODUCTION.to_owned();
        match omitted {
            0 => {}
            1 => text.push_str("\n\n[1 earlier message was left out]"),
            omitted => text.push_str(&format!("\n\n[{omitted} earlier messages were left out]")),
        }
        text.extend(shown);
        text.push('\n');
        (messages > 0).then_some(Transcript { text, messages, omitted, cut })
    }
}

impl Transcript {
    /// How much of the history is in it, and how much is not.
    pub(crate) fn facts(&self) -> TranscriptFacts {
        TranscriptFacts {
            messages: self.messages,
            omitted_messages: self.omitted,
            bytes: self.text.len() as u64,
            truncated: self.omitted > 0 || self.cut,
            turn: None,
        }
    }

    /// A content block for a prompt, in front of the user's: a resource for agents that take one, which tells it from what the
    /// user says; else a text that says where it ends.
    pub(crate) fn block(&self, session: &SessionId, embedded_context: bool) -> Json {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Block<'a> {
            Resource { resource: Resource<'a> },
            Text { text: String },
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Resource<'a> {
            uri: String,
            mime_type: &'static str,
            text: &'a str,
        }
        let text = self.text.as_str();
        let uri = format!("acpd://sessions/{session}/transcript");
        Json::new(&match embedded_context {
            true => Block::Resource { resource: Resource { uri, mime_type: "text/markdown", text } },
            false => Block::Text { text: format!("{text}{END}") },
        })
    }
}

#[cfg(test)]
mod tests;
