//! Which of an entry's kinds is taken on this machine.
//!
//! Pure: what the machine has comes in.

use crate::registry::{Entry, PackageRun, Target};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// How an agent is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An archive, or one file, that is fetched and unpacked.
    Binary,
    /// A package of npm.
    Npx,
    /// A package of PyPI.
    Uvx,
}

impl Kind {
    /// Each, in the order in which they are taken: what needs nothing else first.
    pub const ALL: [Self; 3] = [Self::Binary, Self::Npx, Self::Uvx];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Npx => "npx",
            Self::Uvx => "uvx",
        }
    }

    /// What has to be there for it.
    pub fn needs(self) -> Option<&'static str> {
        match self {
            Self::Binary => None,
            Self::Npx => Some("npm (it comes with Node.js)"),
            Self::Uvx => Some("uv, or python3"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Kind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.word() == text).ok_or("it is binary, npx or uvx")
    }
}

/// A system and processor, in the words of the format, such as `linux-x86_64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform(String);

impl Platform {
    /// That of this program.
    pub fn here() -> Self {
        let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
        Self(format!("{system}-{}", std::env::consts::ARCH))
    }

    /// The words.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which tools this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tools {
    /// npm.
    pub npm: bool,
    /// uv, or Python.
    pub python: bool,
}

/// What is taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Chosen {
    /// The archive for this platform.
    Binary(Target),
    /// A package of npm.
    Npx(PackageRun),
    /// A package of PyPI.
    Uvx(PackageRun),
}

impl Chosen {
    /// Of which kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Binary(_) => Kind::Binary,
            Self::Npx(_) => Kind::Npx,
            Self::Uvx(_) => Kind::Uvx,
        }
    }
}

/// Why nothing of an entry can be taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// There is nothing for this platform.
    #[error("there is nothing for {platform}; there is {there}")]
    Platform {
        /// Of this machine.
        platform: String,
        /// What there is, in words.
        there: String,
    },
    /// Not of the kind that was asked for.
    #[error("there is no {kind} for {platform}; there is {there}")]
    Kind {
        /// That was asked for.
        kind: Kind,
        /// Of this machine.
        platform: String,
        /// What there is, in words.
        there: String,
    },
    /// A tool is missing.
    #[error("{kind} needs {needs}, which is not installed, or not in PATH")]
    Tool {
        /// That needs it.
        kind: Kind,
        /// The tool.
        needs: &'static str,
    },
}

/// Takes the kind that is wanted, or the first that this machine can have: binary, npx, uvx.
///
/// # Errors
/// There is none, or its tool is missing.
pub fn choose(
    entry: &Entry,
    platform: &Platform,
    wanted: Option<Kind>,
    tools: Tools,
) -> Result<Chosen, ResolveError> {
    let of = |kind: Kind| match kind {
        Kind::Binary => entry.distribution.binary.get(platform.as_str()).cloned().map(Chosen::Binary),
        Kind::Npx => entry.distribution.npx.clone().map(Chosen::Npx),
        Kind::Uvx => entry.distribution.uvx.clone().map(Chosen::Uvx),
    };
    let has_tool = |kind: Kind| match kind {
        Kind::Binary => true,
        Kind::Npx => tools.npm,
        Kind::Uvx => tools.python,
    };
    let lacks = |kind: Kind| ResolveError::Tool { kind, needs: kind.needs().unwrap_or_default() };
    if let Some(kind) = wanted {
        return match of(kind) {
            Some(chosen) if has_tool(kind) => Ok(chosen),
            Some(_) => Err(lacks(kind)),
            None => {
                Err(ResolveError::Kind { kind, platform: platform.as_str().to_owned(), there: there(entry) })
            }
        };
    }
    let mut lacking = None;
    for kind in Kind::ALL {
        match of(kind) {
            Some(chosen) if has_tool(kind) => return Ok(chosen),
            Some(_) => lacking = lacking.or(Some(kind)),
            None => {}
        }
    }
    Err(match lacking {
        Some(kind) => lacks(kind),
        None => ResolveError::Platform { platform: platform.as_str().to_owned(), there: there(entry) },
    })
}

fn there(entry: &Entry) -> String {
    let packages = [
        entry.distribution.npx.as_ref().map(|_| Kind::Npx.word().to_owned()),
        entry.distribution.uvx.as_ref().map(|_| Kind::Uvx.word().to_owned()),
    ];
    let binaries = entry.distribution.binary.keys().map(|platform| {
        // It is anything that the file says.
        let platform: String = platform.chars().filter(char::is_ascii_graphic).take(40).collect();
        format!("binary for {platform}")
    });
    let there: Vec<String> = binaries.chain(packages.into_iter().flatten()).take(20).collect();
    if there.is_empty() { "no distribution at all".to_owned() } else { there.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentName, find_entry};

    fn entry(distribution: &str) -> Entry {
        let file = format!(r#"{{"id":"x","name":"X","version":"1","distribution":{{{distribution}}}}}"#);
        let name = AgentName::try_from("x".to_owned()).expect("a name");
        find_entry(&file, &name).expect("an entry")
    }

    // issue 14: binary, npx, uvx unless the tool is missing; what there is otherwise is told
    #[test]
    fn the_first_kind_that_this_machine_can_have_is_taken() {
        const BINARY: &str = r#""binary":{"linux-x86_64":{"archive":"https://h.example/x","cmd":"x"}}"#;
        const NPX: &str = r#""npx":{"package":"x"}"#;
        const UVX: &str = r#""uvx":{"package":"x"}"#;
        let all = entry(&[BINARY, NPX, UVX].join(","));
        let packages = entry(&[NPX, UVX].join(","));
        let binary = entry(BINARY);
        let (here, other) = (Platform("linux-x86_64".to_owned()), Platform("darwin-aarch64".to_owned()));
        for (entry, platform, wanted, [npm, python], expected) in [
            (&all, &here, None, [true, true], "binary"),
            (&all, &other, None, [true, true], "npx"),
            (&all, &other, None, [false, true], "uvx"),
            (&all, &here, Some(Kind::Uvx), [true, true], "uvx"),
            (&all, &here, Some(Kind::Npx), [false, true], "npx needs npm"),
            (&packages, &here, None, [false, false], "npx needs npm"),
            (
                &packages,
                &here,
                Some(Kind::Binary),
                [true, true],
                "there is no binary for linux-x86_64; there is npx, uvx",
            ),
            (
                &binary,
                &other,
                None,
                [true, true],
                "there is nothing for darwin-aarch64; there is binary for linux-x86_64",
            ),
            (
                &entry(""),
                &here,
                None,
                [true, true],
                "there is nothing for linux-x86_64; there is no distribution at all",
            ),
        ] {
            let told = match choose(entry, platform, wanted, Tools { npm, python }) {
                Ok(Chosen::Binary(_)) => "binary".to_owned(),
                Ok(Chosen::Npx(_)) => "npx".to_owned(),
                Ok(Chosen::Uvx(_)) => "uvx".to_owned(),
                Err(error) => error.to_string(),
            };
            assert!(told.starts_with(expected), "{told}, not {expected}");
        }
    }
}
