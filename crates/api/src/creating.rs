//! Bodies of requests that create sessions, take them up and fork them.

use crate::operation::{Answer, FORBIDDEN, Header, Operation, Spec, Tag, Verb, json, problem};
use crate::sessions::SessionInfo;
use acpd_record::{Partition, PermissionMode};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A session that is to be created.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateBody<'a> {
    /// The name of its agent. Default: the agent of clients that name none.
    #[serde(default)]
    pub agent: Option<String>,
    /// Its working directory, an absolute path.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^/")))]
    pub cwd: String,
    /// Its first prompt: text, or content blocks as in ACP.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::prompting::Content>"))]
    pub prompt: Option<&'a RawValue>,
    /// Other directories that it works with, absolute paths.
    #[serde(default)]
    pub additional_directories: Option<Vec<String>>,
    /// MCP servers, as in ACP.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<McpServer>>"))]
    pub mcp_servers: Option<&'a RawValue>,
    /// Who answers permission requests.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Mode>"))]
    pub permission_mode: Option<PermissionMode>,
    /// What becomes of it when its node is cut off from the fleet. Default: what the configuration of the node says.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<WantedPartition>"))]
    pub partition: Option<Partition>,
    /// Its title, one line. It stays, whatever its agent calls it.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 200)))]
    pub title: Option<String>,
    /// Close it when a turn has ended and no prompt waits.
    #[serde(default)]
    pub close_after_turn: bool,
    /// The node of the fleet on which it is to be. Default: this one, unless `labels` are given, or this one takes no new
    /// sessions.
    #[serde(default)]
    pub node: Option<String>,
    /// What its node must have, of the `labels` of nodes; of those that have it, the one with the most room is taken.
    #[serde(default)]
    pub labels: Option<Vec<String>>,
}

/// Where a session that is taken up or forked is to work. What is absent is as it was.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetupBody<'a> {
    /// Its working directory, an absolute path.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^/")))]
    pub cwd: Option<String>,
    /// Other directories that it works with, absolute paths. Default: none.
    #[serde(default)]
    pub additional_directories: Option<Vec<String>>,
    /// MCP servers, as in ACP. Default: none; they are not recorded, since they may hold secrets.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<McpServer>>"))]
    pub mcp_servers: Option<&'a RawValue>,
    /// Who answers permission requests.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Mode>"))]
    pub permission_mode: Option<PermissionMode>,
}

/// An MCP server of ACP. Its members depend on its type.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(inline)]
struct McpServer {
    /// Its name.
    #[serde(rename = "name")]
    _name: String,
}

/// A permission mode.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(inline, rename_all = "camelCase")]
#[expect(dead_code, reason = "it is only described")]
enum Mode {
    Default,
    AcceptEdits,
    BypassPermissions,
    Deny,
}

/// What becomes of a session when its node is cut off.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(inline, rename_all = "lowercase")]
#[expect(dead_code, reason = "it is only described")]
enum WantedPartition {
    Local,
    Failover,
}

const LOGIN: Answer = problem(424, "the agent wants a login first; `authMethods` says how");
const FAILED: Answer = problem(
    502,
    "the agent did not start, ended, or refused: `terminationInfo` says how it ended, if it has",
);
const NO_ROOM: Answer =
    problem(429, "the token has as many live sessions as it may, or sends too many requests");
const BAD_SETUP: Answer = problem(400, "a member is not as described, or the directory is not there");

/// Creates a session.
#[derive(Clone, Copy, Debug)]
pub struct CreateSession;

impl Operation for CreateSession {
    type Input<'a> = CreateBody<'a>;
    type Answer = SessionInfo;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/sessions",
        id: "createSession",
        tag: Tag::Sessions,
        headers: &[Header::IdempotencyKey],
        summary: "creates a session, and prompts it if there is a prompt.",
        detail: "With a prompt, a 201 stands behind the commit of the turn's first event. With an `Idempotency-Key` it may be \
                 sent again: the same\nrequest under the same key is answered with the same session, also after restarts of \
                 acpd, as long as that is not deleted.",
        answers: &[
            json(201, "the session"),
            problem(
                400,
                "a member or the key is not as described, there is no such agent or directory, or the agent does not \
                 take such content; nothing is created",
            ),
            FORBIDDEN,
            problem(
                409,
                "under this key: the session has ended before its prompt began, or another process has it",
            ),
            problem(422, "the key belongs to another request"),
            LOGIN,
            NO_ROOM,
            FAILED,
        ],
        ..Spec::NEW
    };
}

/// Forks a session.
#[derive(Clone, Copy, Debug)]
pub struct ForkSession;

impl Operation for ForkSession {
    type Input<'a> = SetupBody<'a>;
    type Answer = SessionInfo;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/sessions/{id}/fork",
        id: "forkSession",
        summary: "a new session with a copy of the history, forked by the agent.",
        answers: &[
            json(201, "the new session"),
            BAD_SETUP,
            FORBIDDEN,
            problem(409, "the agent cannot fork it, or another process has it"),
            LOGIN,
            NO_ROOM,
            FAILED,
        ],
        ..Spec::OF_SESSION
    };
}

/// Resumes a session that has ended.
#[derive(Clone, Copy, Debug)]
pub struct ResumeSession;

impl Operation for ResumeSession {
    type Input<'a> = SetupBody<'a>;
    type Answer = SessionInfo;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/sessions/{id}/resume",
        id: "resumeSession",
        summary: "takes up a session that has ended. One that is live goes on undisturbed.",
        answers: &[
            json(200, "the session, which is live"),
            BAD_SETUP,
            FORBIDDEN,
            problem(409, "it cannot be taken up again, and why; or another process has it"),
            LOGIN,
            NO_ROOM,
            FAILED,
        ],
        ..Spec::OF_SESSION
    };
}
