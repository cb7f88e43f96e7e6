//! Bodies of requests that create sessions, take them up and fork them.

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
