//! Sessions as files.

use crate::operation::{Answer, Body, FORBIDDEN, Operation, Spec, Tag, Verb, json, problem};
use crate::sessions::SessionInfo;
use serde::Deserialize;

/// In which form.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExportQuery {
    /// `jsonl`, which can be imported, or `markdown`, for people. Default `jsonl`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["jsonl", "markdown"])))]
    pub format: Option<String>,
    /// Of `markdown`: also what tool calls changed, and what they and terminals wrote. Default false.
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub details: Option<String>,
}

/// Exports a session as a file.
#[derive(Clone, Copy, Debug)]
pub struct ExportSession;

impl Operation for ExportSession {
    type Input<'a> = ExportQuery;
    type Answer = ();
    const SPEC: Spec = Spec {
        path: "/sessions/{id}/export",
        id: "exportSession",
        summary: "a session as a file.",
        answers: &[Answer { status: 200, words: "the session up to its last event", body: Body::File }],
        ..Spec::OF_SESSION
    };
}

/// Imports a session from a file.
#[derive(Clone, Copy, Debug)]
pub struct ImportSession;

impl Operation for ImportSession {
    type Input<'a> = ();
    type Answer = SessionInfo;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/import",
        id: "importSession",
        tag: Tag::Sessions,
        summary: "takes over a session that was exported as `jsonl`.",
        detail: "The body is the file, `application/x-ndjson`, of any length.",
        answers: &[
            json(201, "the session, which has ended and belongs to the caller"),
            problem(
                400,
                "it is no export, or not one that may be taken over: which line, which member, and what would be right",
            ),
            FORBIDDEN,
            problem(408, "the body did not come in time"),
            problem(409, "a session of that id is here"),
        ],
        ..Spec::NEW
    };
}
