//! What a token with the scope control is limited to: the values of its entry (contract 7.2).

use super::values::text;
use super::{PermissionMode, Scope, Token};
use acpd_api::McpLimit;
use clap::ValueEnum;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

/// The MCP servers that the bearer of a token may bring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mcp {
    /// Any, commands too.
    #[default]
    Any,
    /// Those that are reached over HTTP.
    Http,
    /// None.
    None,
}

impl Mcp {
    /// The limit that it is, if it is one.
    pub fn limit(self) -> Option<McpLimit> {
        match self {
            Self::Any => None,
            Self::Http => Some(McpLimit::Http),
            Self::None => Some(McpLimit::None),
        }
    }
}

#[derive(Deserialize)]
struct Name(#[serde(deserialize_with = "super::values::name")] String);

#[derive(Deserialize)]
struct Root(#[serde(deserialize_with = "root")] String);

/// Reads a directory that a token is limited to.
///
/// # Errors
/// When it is neither absolute nor below the home directory.
pub fn root_path(path: &str) -> Result<String, String> {
    let is_whole = path.starts_with('/') || path == "~" || path.starts_with("~/");
    match is_whole && !path.contains(char::is_control) {
        true => Ok(path.to_owned()),
        false => Err(format!("\"{}\" is not absolute; give the whole path", path.escape_debug())),
    }
}

fn root<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    text(from, "the path of a directory", root_path)
}

/// A list that says something.
fn filled<E: Error, T>(list: Vec<T>) -> Result<Option<Vec<T>>, E> {
    match list.is_empty() {
        true => Err(E::custom("must not be empty; leave the key out for no limit")),
        false => Ok(Some(list)),
    }
}

pub(super) fn agents<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    filled(Vec::<Name>::deserialize(from)?.into_iter().map(|Name(name)| name).collect())
}

pub(super) fn roots<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    filled(Vec::<Root>::deserialize(from)?.into_iter().map(|Root(path)| path).collect())
}

pub(super) fn modes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<PermissionMode>>, D::Error> {
    filled(Vec::deserialize(from)?)
}

impl Token {
    /// What its bearer may use.
    pub fn limits(&self) -> acpd_api::Limits {
        acpd_api::Limits {
            agents: self.agents.clone(),
            roots: self.roots.clone(),
            permission_modes: self.permission_modes.clone(),
            mcp: self.mcp.limit(),
        }
    }

    /// The first key that limits what its scope does not include, or does not let itself be limited in.
    pub(super) fn limit_of_another_scope(&self) -> Option<&'static str> {
        let given = [
            ("agents", self.agents.is_some()),
            ("roots", self.roots.is_some()),
            ("permission_modes", self.permission_modes.is_some()),
            ("mcp", self.mcp != Mcp::Any),
        ];
        given.into_iter().find(|(_, given)| *given && self.scope != Scope::Control).map(|(key, _)| key)
    }
}

/// What limits that are no configuration yet say, as lines of an entry.
pub fn lines(limits: &acpd_api::Limits) -> String {
    let list = |key: &str, values: Vec<&str>| {
        // A string of JSON without control characters is one of TOML.
        format!("{key} = {}\n", serde_json::to_string(&values).expect("text is JSON"))
    };
    let texts = |texts: &[String], key| list(key, texts.iter().map(String::as_str).collect());
    let mut lines = String::new();
    lines.extend(limits.agents.as_deref().map(|agents| texts(agents, "agents")));
    lines.extend(limits.roots.as_deref().map(|roots| texts(roots, "roots")));
    let modes = limits.permission_modes.as_deref();
    lines.extend(
        modes.map(|modes| list("permission_modes", modes.iter().map(|mode| mode.as_str()).collect())),
    );
    lines.extend(limits.mcp.map(|mcp| format!("mcp = \"{}\"\n", word_of(mcp))));
    lines
}

/// The word of the configuration.
pub fn word_of(mcp: McpLimit) -> &'static str {
    match mcp {
        McpLimit::Http => "http",
        McpLimit::None => "none",
    }
}
