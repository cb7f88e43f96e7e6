//! Removing old sessions.

use crate::operation::{BAD_BODY, FORBIDDEN, Operation, Spec, Tag, Verb, json, problem};
use serde::{Deserialize, Serialize};

/// Which sessions are removed.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PruneBody {
    /// Those that have not changed for longer, in milliseconds.
    #[serde(default)]
    pub older_than_ms: Option<u64>,
    /// The oldest ones, while all sessions together take more, in bytes of their stored blocks.
    #[serde(default)]
    pub keep_bytes: Option<u64>,
    /// Say only which those are.
    #[serde(default)]
    pub dry_run: bool,
}

/// Sessions that were removed, or would be.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pruned {
    /// The one that changed longest ago first.
    pub sessions: Vec<Prunable>,
}

/// An ended session that is removed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prunable {
    /// Its id.
    pub session_id: String,
    /// Its agent's name.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// Its title, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it last changed, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub updated_at: String,
    /// What its stored blocks take, in bytes.
    pub bytes: u64,
}

/// Removes old sessions.
#[derive(Clone, Copy, Debug)]
pub struct PruneSessions;

impl Operation for PruneSessions {
    type Input<'a> = PruneBody;
    type Answer = Pruned;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/prune",
        id: "pruneSessions",
        tag: Tag::Sessions,
        summary: "removes ended sessions that are old, or while all together take too much.",
        detail: "Without `olderThanMs` and `keepBytes` it goes by `keep_for` and `keep_bytes` in `[storage]` of the \
                 configuration. Sessions that are live, or being\ntaken up, are never removed.",
        answers: &[
            json(200, "the sessions that were removed, or with `dryRun` would be"),
            BAD_BODY,
            FORBIDDEN,
            problem(409, "neither the request nor the configuration says which are not to be kept"),
        ],
        ..Spec::NEW
    };
}
