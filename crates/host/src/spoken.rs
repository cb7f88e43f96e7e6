//! What the messages of a conversation say in words: pieces of text, content blocks, tool calls.
//!
//! Pure, and lenient: what is not readable says nothing. Not here: which of them are shown, and where.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A piece of what an agent says.
#[derive(Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) content: Block<'a>,
}

/// A tool call, or what changed of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCall<'a> {
    #[serde(borrow)]
    pub(crate) tool_call_id: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) raw_input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) locations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) raw_output: Option<&'a RawValue>,
}

/// A content block.
#[derive(Default, Deserialize)]
pub(crate) struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource: Option<Resource<'a>>,
}

#[derive(Deserialize)]
struct Resource<'a> {
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
}

impl Block<'_> {
    /// What it says, in words.
    pub(crate) fn spoken(self) -> String {
        match &*self.kind {
            "" => String::new(),
            "text" => self.text.unwrap_or_default().into_owned(),
            "resource_link" => format!("[{}]", self.uri.unwrap_or_default()),
            "resource" => {
                format!("[{}]", self.resource.and_then(|resource| resource.uri).unwrap_or_default())
            }
            kind => format!("[{kind}]"),
        }
    }
}

/// What the content blocks of a prompt say.
pub(crate) fn spoken(blocks: &RawValue) -> String {
    let blocks: Vec<&RawValue> = serde_json::from_str(blocks.get()).unwrap_or_default();
    let read = |block: &RawValue| serde_json::from_str::<Block<'_>>(block.get()).unwrap_or_default().spoken();
    blocks.into_iter().map(read).collect::<Vec<_>>().join("\n")
}
