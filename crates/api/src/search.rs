//! Search over what was said in sessions.

use crate::operation::{FORBIDDEN, Operation, Spec, Tag, json, problem};
use serde::{Deserialize, Serialize};

/// What is searched for.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextQuery {
    /// Words, at most 32; turns in which all of them stand are found. Case, diacritics and what stands between them do not
    /// count; `word*` stands for all words that begin so.
    pub text: String,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// Turns of a page at most, 1 to 100. Default 20.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1, max = 100)))]
    pub limit: Option<String>,
}

/// A page of turns, the latest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SearchPage {
    /// The turns.
    pub hits: Vec<SearchHit>,
    /// Some sessions are not indexed yet, so there may be more later.
    pub incomplete: bool,
    /// Where the next page begins; not there on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A turn in which all the words stand.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchHit {
    /// Its session.
    pub session_id: String,
    /// The name of the session's agent.
    pub agent: String,
    /// The session's working directory.
    pub cwd: String,
    /// The session's title, if its agent gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The event of the turn's prompt.
    pub seq: u64,
    /// When that happened, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub at: String,
    /// The part of the turn that the snippet is of: the one with the most of the words.
    pub part: Part,
    /// The text around the first of the words in it, in one line.
    pub snippet: String,
}

/// A part of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Part {
    /// What the client said.
    Prompt,
    /// What the agent said.
    Answer,
    /// The titles of its tool calls.
    Tool,
}

/// Searches for turns.
#[derive(Clone, Copy, Debug)]
pub struct Search;

impl Operation for Search {
    type Input<'a> = TextQuery;
    type Answer = SearchPage;
    const SPEC: Spec = Spec {
        path: "/search",
        id: "search",
        tag: Tag::Sessions,
        summary: "turns of sessions that exist for the caller, by the words of prompts, answers and \
                  titles of tool calls.",
        answers: &[
            json(200, "a page of turns"),
            FORBIDDEN,
            problem(409, "the configuration turns search off"),
        ],
        ..Spec::NEW
    };
}
