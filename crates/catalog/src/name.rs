//! Names and versions of agents: each can be one component of a path, and a word on a command line.
//!
//! Pure. Not here: what a version means beyond its order.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use thiserror::Error;

/// The longest name, in bytes; as in the configuration.
const LONGEST_NAME: usize = 64;
/// The longest version, in bytes.
const LONGEST_VERSION: usize = 100;

/// Why a text is no name or version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "\"{}\" is not {what}: use up to {longest} letters, digits, {marks}, begin with a letter or digit, and put no two dots \
     in a row",
    text.escape_debug()
)]
pub struct NameError {
    /// What was written.
    text: String,
    what: &'static str,
    longest: usize,
    marks: &'static str,
}

/// The name of an agent: of its entry in the configuration, of its directory, and of its entry in a registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub struct AgentName(String);

/// A version of an agent, as its makers write it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub struct Version(String);

fn is_component(text: &str, longest: usize, marks: &[char]) -> bool {
    let fits = (1..=longest).contains(&text.len()) && !text.contains("..");
    fits && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(&c))
}

impl AgentName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AgentName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        match is_component(&text, LONGEST_NAME, &['.', '_', '-']) {
            true => Ok(Self(text)),
            false => Err(NameError {
                text,
                what: "the name of an agent",
                longest: LONGEST_NAME,
                marks: "\".\", \"_\" and \"-\"",
            }),
        }
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Version {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How it stands to another: numbers by their size, a version with a word behind it (`1.0.0-rc.1`, `1.0rc1`) before
    /// the one without, `post` behind it. What follows a plus sign makes no difference.
    pub fn order(&self, other: &Self) -> Ordering {
        let (mine, others) = (parts(&self.0), parts(&other.0));
        for at in 0..mine.len().max(others.len()) {
            let of = |list: &[Part]| list.get(at).cloned().unwrap_or(Part::End);
            match of(&mine).cmp(&of(&others)) {
                Ordering::Equal => {}
                other => return other,
            }
        }
        Ordering::Equal
    }
}

/// A part of a version, in the order in which they come.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Before the version itself.
    Word(String),
    /// Nothing more; the same as a zero.
    End,
    /// Behind the version itself, before the next one.
    Post,
    Number(u64),
}

fn parts(version: &str) -> Vec<Part> {
    let version = version.split('+').next().unwrap_or_default();
    let version = version.strip_prefix(['v', 'V']).unwrap_or(version);
    let mut parts = Vec::new();
    let mut rest = version;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let same = |c: char| c.is_ascii_alphanumeric() && c.is_ascii_digit() == is_digit;
        let end = rest.find(|c| !same(c)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end.max(1));
        rest = after;
        if !first.is_ascii_alphanumeric() {
            continue;
        }
        let part = match part.parse() {
            Ok(0) => Part::End,
            Ok(number) => Part::Number(number),
            Err(_) if is_digit => Part::Number(u64::MAX),
            Err(_) if part.eq_ignore_ascii_case("post") => Part::Post,
            Err(_) => Part::Word(part.to_ascii_lowercase()),
        };
        // `1.0.0-rc.1` is of `1`, as `1.0rc1` is.
        while matches!(part, Part::Word(_)) && parts.last() == Some(&Part::End) {
            parts.pop();
        }
        parts.push(part);
    }
    parts
}

impl TryFrom<String> for Version {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        match is_component(&text, LONGEST_VERSION, &['.', '_', '-', '+']) {
            true => Ok(Self(text)),
            false => Err(NameError {
                text,
                what: "a version",
                longest: LONGEST_VERSION,
                marks: "\".\", \"_\", \"-\" and \"+\"",
            }),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 14: names and versions lead nowhere else
    #[test]
    fn a_name_is_one_component_of_a_path() {
        let long = "x".repeat(65);
        for name in ["opencode", "claude-agent.2", "A_b", "7"] {
            assert!(AgentName::try_from(name.to_owned()).is_ok(), "{name}");
        }
        for name in
            ["", ".", "..", "../x", "a/b", "a\\b", "-x", ".x", "_x", "a..b", "a b", "ä", "a\0", "a\n", &long]
        {
            assert!(AgentName::try_from(name.to_owned()).is_err(), "{name}");
        }
        for version in ["1.2.3", "1.0.0-rc.1+build_5", "2024.1"] {
            assert!(Version::try_from(version.to_owned()).is_ok(), "{version}");
        }
        for version in
            ["", "../1", "1/2", "1..2", "-1", "^1", ">=1", "1:2", "*", "latest version", &"1".repeat(101)]
        {
            assert!(Version::try_from(version.to_owned()).is_err(), "{version}");
        }
        let error = AgentName::try_from("../x\u{1b}".to_owned()).expect_err("no name");
        assert!(error.to_string().starts_with("\"../x\\u{1b}\" is not the name of an agent: use"), "{error}");
    }

    // issue 14: what is outdated has a newer version, not another one
    #[test]
    fn versions_have_an_order() {
        let version = |text: &str| Version::try_from(text.to_owned()).expect("a version");
        let rising = [
            "0.9",
            "1.0.0-alpha.1",
            "1.0.0-beta",
            "1.0.0-rc.1",
            "1.0rc2",
            "1.0.0",
            "1.0.post1",
            "1.0.1",
            "1.2.0",
            "1.10",
            "v2.0",
            "2024.1",
        ];
        for (at, lower) in rising.iter().enumerate() {
            for higher in &rising[at + 1..] {
                assert_eq!(version(lower).order(&version(higher)), Ordering::Less, "{lower} {higher}");
                assert_eq!(version(higher).order(&version(lower)), Ordering::Greater, "{higher} {lower}");
            }
        }
        for (one, same) in [("1.0", "1.0.0"), ("v1.2", "1.2"), ("1.0+a", "1.0+b"), ("1", "1.0.0.0")] {
            assert_eq!(version(one).order(&version(same)), Ordering::Equal, "{one} {same}");
        }
    }
}
