//! A registry's file, in the format of the ACP registry: a list of agents, or one agent.
//!
//! Pure. Members of a way to have an agent that are not known are kept by name, so that they can be said; other unknown ones
//! are ignored, and those of other agents are not looked at. A wrong one of the agent that is asked for is an error that
//! names its path.

use crate::inside::InsidePath;
use crate::name::{AgentName, Version};
use crate::spec::{Ecosystem, PackageSpec};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// Why there is no entry.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// It is no JSON, or not an object.
    #[error("it is no registry")]
    Unreadable(#[source] serde_json::Error),
    /// It is an object about something else.
    #[error("it is no registry: it has neither a list `agents` nor, as the file of one agent, an `id`")]
    Neither,
    /// A member is not as the format has it.
    #[error("{path}: {message}")]
    Member {
        /// Where, as in `agents[3].distribution.npx.package`.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// It has none of this id.
    #[error("it has no agent with this id")]
    Unknown {
        /// The ids that it has.
        ids: Vec<String>,
    },
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    /// By which it is asked for.
    pub id: AgentName,
    /// For people.
    pub name: String,
    /// The version that its distribution is of.
    pub version: Version,
    /// How it is had.
    pub distribution: Distribution,
}

/// How an agent is had, of each kind at most one.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Distribution {
    /// Archives, by platform.
    #[serde(default)]
    pub binary: BTreeMap<String, Target>,
    /// A package of npm.
    #[serde(default, deserialize_with = "npm")]
    pub npx: Option<PackageRun>,
    /// A package of PyPI.
    #[serde(default, deserialize_with = "python")]
    pub uvx: Option<PackageRun>,
}

/// An archive for one platform.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Target {
    /// Where it is.
    pub archive: HttpsUrl,
    /// The program in it.
    pub cmd: InsidePath,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<Argument>,
    /// Its variables.
    #[serde(default)]
    pub env: BTreeMap<Variable, Argument>,
    /// What the archive has to be.
    #[serde(default)]
    pub sha256: Option<Sha256>,
    /// Members that are not known here.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// A package that is run.
#[derive(Debug, Clone, PartialEq)]
pub struct PackageRun {
    /// Which.
    pub package: PackageSpec,
    /// The program of the package, where it has several.
    pub cmd: Option<ProgramName>,
    /// Its arguments.
    pub args: Vec<Argument>,
    /// Its variables.
    pub env: BTreeMap<Variable, Argument>,
    /// Members that are not known here.
    pub unknown: Unknown,
}

/// The names of members that are not known here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unknown(Vec<String>);

impl Unknown {
    /// Each, in the order of the letters.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Unknown {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let members = BTreeMap::<String, IgnoredAny>::deserialize(from)?;
        Ok(Self(members.into_keys().collect()))
    }
}

/// The same as it is written.
#[derive(Deserialize)]
struct Written<P> {
    package: P,
    #[serde(default)]
    cmd: Option<ProgramName>,
    #[serde(default)]
    args: Vec<Argument>,
    #[serde(default)]
    env: BTreeMap<Variable, Argument>,
    #[serde(flatten)]
    unknown: Unknown,
}

impl<P> Written<P> {
    fn run(self, spec: impl FnOnce(P) -> PackageSpec) -> PackageRun {
        let Self { package, cmd, args, env, unknown } = self;
        PackageRun { package: spec(package), cmd, args, env, unknown }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct OfNpm(PackageSpec);

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct OfPyPi(PackageSpec);

impl TryFrom<String> for OfNpm {
    type Error = crate::SpecError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        PackageSpec::read(Ecosystem::Npm, &text).map(Self)
    }
}

impl TryFrom<String> for OfPyPi {
    type Error = crate::SpecError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        PackageSpec::read(Ecosystem::PyPi, &text).map(Self)
    }
}

fn npm<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PackageRun>, D::Error> {
    let written = Option::<Written<OfNpm>>::deserialize(from)?;
    Ok(written.map(|written| written.run(|OfNpm(package)| package)))
}

fn python<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PackageRun>, D::Error> {
    let written = Option::<Written<OfPyPi>>::deserialize(from)?;
    Ok(written.map(|written| written.run(|OfPyPi(package)| package)))
}

/// A text that a program can be given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Argument(String);

/// The name of a program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ProgramName(String);

/// The name of a variable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Variable(String);

/// An address that is reached by TLS only.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HttpsUrl(String);

/// A hash.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub struct Sha256(String);

impl Argument {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ProgramName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Variable {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl HttpsUrl {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Sha256 {
    /// 64 hexadecimal digits, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HttpsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Argument {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.contains('\0') { Err("no program can be given a NUL character") } else { Ok(Self(text)) }
    }
}

impl TryFrom<String> for ProgramName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
        match text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && text.chars().all(|c| plain(c) || c == '_')
        {
            true => Ok(Self(text)),
            false => Err("the name of a program of the package is required, without a directory"),
        }
    }
}

impl TryFrom<String> for Variable {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.is_empty() || text.contains(['=', '\0']) {
            true => Err("the name of a variable must not be empty or contain \"=\" or NUL"),
            false => Ok(Self(text)),
        }
    }
}

impl TryFrom<String> for HttpsUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = |why: &str| Err(format!("\"{}\" {why}", text.escape_debug()));
        let Some(rest) = text.strip_prefix("https://") else { return wrong("is not an https:// address") };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if host.is_empty()
            || host.contains('@')
            || !text.is_ascii()
            || text.contains(|c: char| c.is_ascii_control() || c == ' ')
        {
            return wrong("is not an https:// address with a host, without a user, in ASCII");
        }
        Ok(Self(text))
    }
}

impl TryFrom<String> for Sha256 {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            true => Ok(Self(text.to_ascii_lowercase())),
            false => Err("a SHA-256 has 64 hexadecimal digits"),
        }
    }
}

/// What says which agent an object is of.
#[derive(Deserialize)]
struct Id {
    #[serde(default)]
    id: String,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    agents: Option<Vec<&'a RawValue>>,
}

/// The entry with this id, of a registry, or of the one agent that the file is about.
///
/// # Errors
/// It is no registry, has no such agent, or a member of its entry is wrong.
pub fn find_entry(file: &str, id: &AgentName) -> Result<Entry, RegistryError> {
    let read: File<'_> = serde_json::from_str(file).map_err(RegistryError::Unreadable)?;
    let whole: &RawValue;
    let (agents, in_list) = match read.agents {
        Some(agents) => (agents, true),
        None => {
            whole = serde_json::from_str(file).map_err(RegistryError::Unreadable)?;
            (vec![whole], false)
        }
    };
    let of =
        |agent: &RawValue| serde_json::from_str::<Id>(agent.get()).map(|agent| agent.id).unwrap_or_default();
    if !in_list && of(agents[0]).is_empty() {
        return Err(RegistryError::Neither);
    }
    let Some(at) = agents.iter().position(|agent| of(agent) == id.as_str()) else {
        let mut ids: Vec<String> = agents.iter().map(|agent| of(agent)).filter(|id| !id.is_empty()).collect();
        ids.sort();
        return Err(RegistryError::Unknown { ids });
    };
    let mut reader = serde_json::Deserializer::from_str(agents[at].get());
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let within = error.path().to_string();
        let path = match (in_list, within.as_str()) {
            (true, "." | "") => format!("agents[{at}]"),
            (true, within) => format!("agents[{at}].{within}"),
            (false, _) => within,
        };
        // The place in the object is no place in the file.
        let message = error.inner().to_string();
        let message =
            message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned();
        RegistryError::Member { path, message }
    })
}

#[cfg(test)]
mod tests;
