//! Names of nodes: each is one token of a subject, and a word on a command line.

use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// Why a text is no name of a node.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "\"{}\" is no name of a node: use up to {LONGEST} letters, digits, dashes and underscores, and begin with a letter or digit",
    .0.escape_debug()
)]
pub struct NodeNameError(String);

/// The name of a node, unique in its fleet (contract 7.2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub struct NodeName(String);

impl NodeName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for NodeName {
    type Error = NodeNameError;

    fn try_from(text: String) -> Result<Self, NodeNameError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_name = (1..=LONGEST).contains(&text.len())
            && text.chars().all(is_plain)
            && text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if is_name { Ok(Self(text)) } else { Err(NodeNameError(text)) }
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.2: the name of a node is a token of a subject, so nothing in it can name another
    #[test]
    fn a_name_is_one_token() {
        for (text, is_name) in [
            ("build-1", true),
            ("A_b", true),
            ("7", true),
            ("", false),
            ("a.b", false),
            ("a b", false),
            ("*", false),
            (">", false),
            ("-a", false),
            ("ä", false),
            ("a/../b", false),
        ] {
            assert_eq!(NodeName::try_from(text.to_owned()).is_ok(), is_name, "{text:?}");
        }
        assert!(NodeName::try_from("x".repeat(LONGEST)).is_ok());
        assert!(NodeName::try_from("x".repeat(LONGEST + 1)).is_err());
    }
}
