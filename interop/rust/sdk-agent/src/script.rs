//! A prompt to the steps of its turn. Pure.
//!
//! Invariant: the text of all chunks together is the text of the lines that are no directives.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, SessionUpdate, TextContent, ToolCall, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};

/// One thing to do in a turn.
pub(crate) enum Step {
    /// Boxed because an update is large and a hang is nothing.
    Update(Box<SessionUpdate>),
    /// Wait until the turn is cancelled.
    Hang,
}

/// What the text blocks of `prompt` ask for, line by line.
pub(crate) fn steps(prompt: &[ContentBlock]) -> Vec<Step> {
    let texts = prompt.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let mut calls = 0;
    let mut steps = Vec::new();
    for line in texts.flat_map(|text| text.split_inclusive('\n')) {
        match line.trim_end().strip_prefix("tool ") {
            Some(title) => {
                calls += 1;
                steps.extend(tool(&format!("call-{calls}"), title));
            }
            None if line.trim_end() == "hang" => steps.push(Step::Hang),
            None => steps.extend(line.split_inclusive(' ').map(say)),
        }
    }
    steps
}

fn say(word: &str) -> Step {
    let content = ContentBlock::Text(TextContent::new(word));
    update(SessionUpdate::AgentMessageChunk(ContentChunk::new(content)))
}

fn tool(id: &str, title: &str) -> [Step; 2] {
    let call = ToolCall::new(id.to_owned(), title).status(ToolCallStatus::Pending);
    let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
    let completed = ToolCallUpdate::new(id.to_owned(), fields);
    [update(SessionUpdate::ToolCall(call)), update(SessionUpdate::ToolCallUpdate(completed))]
}

fn update(update: SessionUpdate) -> Step {
    Step::Update(Box::new(update))
}
