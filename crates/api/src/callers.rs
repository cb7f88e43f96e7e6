//! Callers: their scopes and limits, their tokens, and codes by which a browser is let in.

use crate::operation::{Access, FORBIDDEN, Operation, Spec, Verb, json, problem};
use acpd_record::PermissionMode;
use serde::{Deserialize, Serialize};

/// What the bearer of a token may do; each scope includes the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// List, inspect and watch.
    Observe,
    /// Also prompt, answer, cancel and close.
    Control,
    /// Also terminate any session, delete, and see agents and metrics.
    Admin,
}

impl Scope {
    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Control => "control",
            Self::Admin => "admin",
        }
    }
}

/// What the bearer of a token may use. What is absent is not limited.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The names of agents.
    pub agents: Option<Vec<String>>,
    /// Directories in which sessions may work, and below which; absolute paths.
    pub roots: Option<Vec<String>>,
    /// The permission modes that a session may be in.
    pub permission_modes: Option<Vec<PermissionMode>>,
    /// The MCP servers that a session may be given.
    pub mcp: Option<McpLimit>,
}

impl Limits {
    /// Whether an agent may be used.
    pub fn allow_agent(&self, agent: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.iter().any(|allowed| allowed == agent))
    }
}

/// The MCP servers that a session may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum McpLimit {
    /// Those that are reached over HTTP: none is a command.
    Http,
    /// None.
    None,
}

/// The caller.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Whoami {
    /// The name of its token; not there for a caller that needs none.
    pub name: Option<String>,
    /// What it may do.
    pub scope: Scope,
    /// Which sessions exist for it.
    pub sees: Sees,
    /// What it may use with that scope; not there for a caller without limits.
    pub limits: Option<Limits>,
    /// The names of the agents that it may use, the default one first.
    pub agents: Vec<String>,
    /// A directory where acpd runs in which a session of its may work; not there for a caller that may begin none.
    pub cwd: Option<String>,
}

/// Which sessions exist for a caller.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Sees {
    /// Those that were created under its token.
    Own,
    /// All.
    All,
}

/// All tokens that are known.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownTokens {
    /// By name.
    pub tokens: Vec<KnownToken>,
}

/// A token, without anything secret.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KnownToken {
    /// Its name.
    pub name: String,
    /// What its bearer may do.
    pub scope: Scope,
    /// Which sessions exist for its bearer.
    pub sees: Sees,
    /// What its bearer may use with that scope; not there without limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// When it is refused from, if ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub expires: Option<String>,
    /// Whether it is refused for that already.
    pub expired: bool,
    /// When a request last came with it, up to a minute early after a crash of the daemon; not there before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub last_used: Option<String>,
}

/// A code.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Code {
    /// What `POST /v1/open` takes, once.
    pub code: String,
    /// Until when, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub expires_at: String,
}

/// What is to be changed for a token.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenBody {
    /// A code of `POST /v1/codes`.
    pub code: String,
}

/// A token for one browser.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Opened {
    /// The token: all that the owner of the daemon may do.
    pub token: String,
    /// It is refused from then on, and after the end of the daemon; ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub expires_at: String,
}

/// Issues a code for a browser.
#[derive(Clone, Copy, Debug)]
pub struct IssueCode;

impl Operation for IssueCode {
    type Input<'a> = ();
    type Answer = Code;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/codes",
        id: "issueCode",
        summary: "a code for a browser of the daemon's owner, who is let in by it once.",
        detail: "Only over the Unix socket, to a caller without a token.",
        answers: &[
            json(201, "the code, which is good for 60 seconds"),
            problem(403, "the caller is not the owner of the daemon at its Unix socket"),
        ],
        ..Spec::NEW
    };
}

/// Exchanges a code for a token.
#[derive(Clone, Copy, Debug)]
pub struct OpenByCode;

impl Operation for OpenByCode {
    type Input<'a> = OpenBody;
    type Answer = Opened;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/open",
        id: "openByCode",
        access: Access::Open,
        summary: "a token for a code.",
        detail: "The token may do what the owner of the daemon may, for 12 hours, and not after the end of the daemon.",
        answers: &[
            json(200, "the token"),
            problem(400, "the body is not readable"),
            problem(401, "the code is unknown, was used, or is too old"),
            problem(408, "the body did not come in time"),
        ],
        ..Spec::NEW
    };
}

/// Lists the tokens.
#[derive(Clone, Copy, Debug)]
pub struct ListTokens;

impl Operation for ListTokens {
    type Input<'a> = ();
    type Answer = KnownTokens;
    const SPEC: Spec = Spec {
        path: "/tokens",
        id: "listTokens",
        summary: "the tokens that are known, and when they were last used; never a secret.",
        answers: &[json(200, "the tokens"), FORBIDDEN],
        ..Spec::NEW
    };
}

/// Describes the caller.
#[derive(Clone, Copy, Debug)]
pub struct GetWhoami;

impl Operation for GetWhoami {
    type Input<'a> = ();
    type Answer = Whoami;
    const SPEC: Spec = Spec {
        path: "/whoami",
        id: "whoami",
        summary: "what the caller may do, and sees.",
        answers: &[json(200, "the caller")],
        ..Spec::NEW
    };
}
