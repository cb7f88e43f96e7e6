//! What a request wants to use, found out and held against the limits of its token (contract 7.2).
//!
//! Nothing is found out for a token without limits. Of params only members are taken that are known here: an agent may
//! make anything of the others.

use crate::access::Refusal;
use crate::identity::Identity;
use crate::limits::{Asked, Beyond, McpServer, within};
use acpd_api::Limits;
use acpd_host::{Found, Host, PermissionMode, SessionHandle, Works};
use acpd_record::SessionId;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::{Path, PathBuf};

/// What a request wants to use.
pub(crate) struct Wanted<'a> {
    /// The name of the agent, where it is not that of a session.
    pub(crate) agent: &'a str,
    /// The session, as it was found.
    pub(crate) session: Option<(&'a SessionId, &'a Found)>,
    /// What a run would begin with.
    pub(crate) begins: Option<Beginning<'a>>,
}

/// What a run would begin with.
#[derive(Clone, Copy)]
pub(crate) struct Beginning<'a> {
    /// Those of `session/new`, `load`, `resume` or `fork`.
    pub(crate) params: &'a [u8],
    /// A run that is live goes on instead.
    pub(crate) unless_live: bool,
}

/// What may be in the params of a request that begins a run under limits. A member that is there twice is refused:
/// receivers differ in which one they take.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Given {
    #[serde(rename = "sessionId")]
    _session_id: Option<IgnoredAny>,
    cwd: Option<String>,
    additional_directories: Option<Vec<String>>,
    mcp_servers: Option<Vec<McpServer>>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

/// acpd's own, and what ACP reserves for tracing. Some agents take options of theirs here, which acpd cannot judge.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Meta {
    #[serde(rename = "sandboxagent.dev")]
    own: Option<Own>,
    #[serde(rename = "traceparent")]
    _traceparent: Option<IgnoredAny>,
    #[serde(rename = "tracestate")]
    _tracestate: Option<IgnoredAny>,
    #[serde(rename = "baggage")]
    _baggage: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Own {
    permission_mode: Option<PermissionMode>,
}

impl Given {
    fn read(params: &[u8]) -> Result<Self, Refusal> {
        let refused = |error: serde_json::Error| Refusal::Unreadable {
            reason: format!("params, under a token with limits: {error}"),
        };
        match params.is_empty() {
            true => Ok(Self::default()),
            false => acpd_wire::read(params).map_err(refused),
        }
    }

    fn mode(&self) -> Option<PermissionMode> {
        self.meta.as_ref().and_then(|meta| meta.own.as_ref()?.permission_mode)
    }

    fn directories(&self) -> impl Iterator<Item = (String, &Path)> {
        let cwd = self.cwd.iter().map(|cwd| ("cwd".to_owned(), Path::new(cwd)));
        let others = self.additional_directories.iter().flatten().enumerate();
        cwd.chain(others.map(|(place, path)| (format!("additionalDirectories[{place}]"), Path::new(path))))
    }
}

/// Whether the caller may use that.
pub(crate) async fn check(host: &Host, identity: &Identity, wanted: Wanted<'_>) -> Result<(), Refusal> {
    let Some(limits) = identity.limits() else { return Ok(()) };
    let works = match wanted.session {
        Some((id, found)) => Some(host.works(id, found).await.map_err(|_| Refusal::UnknownSession)?),
        None => None,
    };
    let given = wanted.begins.map(|begins| Given::read(begins.params)).transpose()?.unwrap_or_default();
    let agent = works.as_ref().map_or(wanted.agent, |works| &works.agent);
    let in_force = works.as_ref().and_then(|works| works.in_force);
    let chosen = || works.as_ref().and_then(|works| works.chosen);
    // Of a run that begins: what is asked for, or what the session was set to, or what the agent's entry says.
    let begins = wanted.begins.filter(|begins| !begins.unless_live || in_force.is_none());
    let next = begins.and_then(|_| chosen().or_else(|| host.agents().permission_mode(agent)));
    let modes = in_force.into_iter().chain(given.mode().or(next)).collect();
    let directories = works.iter().flat_map(directories_of).chain(given.directories()).collect();
    let servers = given.mcp_servers.as_deref().unwrap_or_default();
    decide(&limits, &Asked { agent, directories, modes, servers }).map_err(Refusal::Beyond)
}

/// Whether the caller may use a live session.
pub(crate) fn check_live(identity: &Identity, live: &SessionHandle) -> Result<(), Box<Beyond>> {
    let Some(limits) = identity.limits() else { return Ok(()) };
    let works = live.works();
    let (directories, modes) = (directories_of(&works).collect(), works.in_force.into_iter().collect());
    decide(&limits, &Asked { agent: &works.agent, directories, modes, servers: &[] })
}

fn directories_of(works: &Works) -> impl Iterator<Item = (String, &Path)> {
    let name = |place| if place == 0 { "the session's cwd" } else { "the session's additionalDirectories" };
    works.directories.iter().enumerate().map(move |(place, path)| (name(place).to_owned(), path.as_path()))
}

fn decide(limits: &Limits, asked: &Asked<'_>) -> Result<(), Box<Beyond>> {
    within(limits, asked, directory).map_err(Box::new)
}

/// A directory as it is after links and `..`.
fn directory(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok().filter(|path| path.is_dir())
}
