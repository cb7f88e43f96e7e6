//! What a token with the scope control may be used for (contract 7.2): one decision for ACP and REST.
//!
//! Pure: how a path is resolved is given. A path is compared with the roots as both are after links and `..`; one that is
//! not there is below nothing. Not here: what is asked, which `wanted.rs` finds out.

use acpd_api::{Limits, McpLimit};
use acpd_host::PermissionMode;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::{Path, PathBuf};

/// An MCP server, as far as it matters here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct McpServer {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<IgnoredAny>,
    /// Whatever else; with it, an array is no server.
    #[serde(flatten)]
    _others: IgnoredAny,
}

impl McpServer {
    /// What is not known to be reached over HTTP counts as a command.
    fn is_command(&self) -> bool {
        self.command.is_some() || !matches!(self.kind.as_deref(), Some("http" | "sse"))
    }
}

/// What a request wants to use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked<'a> {
    /// The name of the agent.
    pub(crate) agent: &'a str,
    /// Where the session works, each with the name of what says so.
    pub(crate) directories: Vec<(String, &'a Path)>,
    /// The permission modes that it asks for, or would use.
    pub(crate) modes: Vec<PermissionMode>,
    /// The MCP servers that it brings.
    pub(crate) servers: &'a [McpServer],
}

/// What is beyond a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beyond {
    /// The limit, as the configuration calls it.
    pub(crate) limit: &'static str,
    /// What it is, and what is allowed.
    pub(crate) message: String,
    /// What is allowed.
    pub(crate) allowed: Vec<String>,
}

impl Beyond {
    fn new(limit: &'static str, what: &str, allowed: Vec<String>) -> Self {
        let listed = allowed.join(", ");
        Self { limit, message: format!("{what}; this token is limited to {listed}"), allowed }
    }
}

/// Whether what a request wants to use is within the limits of its token. `resolve` gives a path as it is after links
/// and `..`, if it is there.
pub(crate) fn within(
    limits: &Limits,
    asked: &Asked<'_>,
    resolve: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<(), Beyond> {
    if let Some(agents) = limits.agents.as_ref().filter(|_| !limits.allow_agent(asked.agent)) {
        return Err(Beyond::new("agents", &format!("agent: not {:?}", asked.agent), agents.clone()));
    }
    if let Some(roots) = &limits.roots {
        let allowed: Vec<PathBuf> = roots.iter().filter_map(|root| resolve(Path::new(root))).collect();
        let is_below = |path: &Path| {
            let resolved = Some(path).filter(|path| path.is_absolute()).and_then(&resolve);
            resolved.is_some_and(|path| allowed.iter().any(|root| path.starts_with(root)))
        };
        if let Some((field, path)) = asked.directories.iter().find(|(_, path)| !is_below(path)) {
            let what = format!("{field}: {path:?} is no directory at or below those allowed");
            return Err(Beyond::new("roots", &what, roots.clone()));
        }
    }
    if let Some(modes) = &limits.permission_modes
        && let Some(mode) = asked.modes.iter().find(|mode| !modes.contains(mode))
    {
        let allowed = modes.iter().map(|mode| mode.as_str().to_owned()).collect();
        let what = format!("permissionMode: the session is not to be in {}", mode.as_str());
        return Err(Beyond::new("permission_modes", &what, allowed));
    }
    match limits.mcp {
        Some(McpLimit::None) if !asked.servers.is_empty() => {
            let message = "mcpServers: this token brings none; give []".to_owned();
            Err(Beyond { limit: "mcp", message, allowed: Vec::new() })
        }
        Some(McpLimit::Http) => match asked.servers.iter().position(McpServer::is_command) {
            Some(place) => {
                let what = format!("mcpServers[{place}]: a server that is a command is not allowed");
                Err(Beyond::new("mcp", &what, vec!["http".to_owned(), "sse".to_owned()]))
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
