//! What can be wrong with a configuration, shown so that the reader can go and mend it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The longest part of an offending line that is shown, in characters.
const SHOWN: usize = 120;

/// Why there is no configuration.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A file that a flag or variable names, or the default one, cannot be read.
    #[error("cannot read the configuration {}{}", path.display(), named_by.map(|by| format!(" (named by {by})")).unwrap_or_default())]
    Read {
        /// The file.
        path: PathBuf,
        /// The flag or variable that names it; `None` for the default place.
        named_by: Option<&'static str>,
        /// What the operating system says.
        #[source]
        source: std::io::Error,
    },
    /// Something in the file is wrong.
    #[error("{place}: {message}{excerpt}")]
    File {
        /// File, line and column, both from 1, the column in characters.
        place: String,
        /// What, and what to write instead.
        message: String,
        /// The line with a mark under the wrong part; empty where the line may hold a secret.
        excerpt: String,
    },
    /// A variable that overrides a key is wrong.
    #[error("environment variable {variable}: {message}")]
    Variable {
        /// Its name.
        variable: String,
        /// What is wrong, and what to write instead.
        message: String,
    },
    /// A command is said to be below a home directory that there is none of.
    #[error(
        "the command of [agents.{agent}] begins with ~, and $HOME is not set, or not UTF-8; write the whole path"
    )]
    NoHome {
        /// The agent.
        agent: String,
    },
    /// So does a root.
    #[error(
        "a root of [tokens.{token}] begins with ~, and $HOME is not set, or not UTF-8; write the whole path"
    )]
    NoHomeForRoot {
        /// The token.
        token: String,
    },
    /// There is no place for state.
    #[error(
        "no state directory: $XDG_STATE_HOME and $HOME are not set; set one of them, or name a directory with --state-dir"
    )]
    NoStateDirectory,
    /// The state directory's path cannot be made absolute.
    #[error("cannot resolve the state directory {}", path.display())]
    StateDirectory {
        /// As it was given.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: std::io::Error,
    },
}

/// An agent was asked for that is not configured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", words(name, absent.as_deref(), meant.as_deref(), known))]
pub struct UnknownAgent {
    /// What was asked for, escaped.
    pub name: String,
    /// A known agent is called so: what is missing of it, and what installs it.
    pub absent: Option<String>,
    /// What it is probably a slip of.
    pub meant: Option<String>,
    /// The configured names.
    pub known: Vec<String>,
}

fn words(name: &str, absent: Option<&str>, meant: Option<&str>, known: &[String]) -> String {
    if let Some(why) = absent {
        return format!("agent {name} is not installed: {why}");
    }
    let is_there = |meant: &str| known.iter().any(|known| known == meant);
    let more = |meant: &str| if is_there(meant) { "" } else { ", which is not installed" };
    let meant = meant.map(|meant| format!("; did you mean \"{meant}\"{}?", more(meant)));
    format!("no agent is called \"{name}\"; configured: {}{}", known.join(", "), meant.unwrap_or_default())
}

/// An error at a span of the file's text. `secret`: the line may hold a secret and is not repeated.
pub(super) fn at(file: &Path, text: &str, span: Range<usize>, message: String, secret: bool) -> ConfigError {
    let start = text.floor_char_boundary(span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_number = text[..line_start].matches('\n').count() + 1;
    let column = text[line_start..start].chars().count();
    let line = text[line_start..].lines().next().unwrap_or_default();
    let end = text.floor_char_boundary(span.end).clamp(start, (line_start + line.len()).max(start));
    let width = text[start..end].chars().count().max(1);
    let place = format!("{}:{line_number}:{}", file.display(), column + 1);
    let excerpt = if secret { String::new() } else { excerpt(line, line_number, column, width) };
    ConfigError::File { place, message, excerpt }
}

fn excerpt(line: &str, number: usize, column: usize, width: usize) -> String {
    // A window around the mark, for a generated line.
    let skipped = if column + width > SHOWN { column.saturating_sub(SHOWN / 4) } else { 0 };
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = line.chars().skip(skipped).take(SHOWN).map(visible).collect();
    let number = number.to_string();
    let gutter = " ".repeat(number.len());
    let indent = " ".repeat(column - skipped);
    let mark = "^".repeat(width.min(SHOWN.saturating_sub(column - skipped)).max(1));
    format!("\n{gutter} |\n{number} | {}\n{gutter} | {indent}{mark}", shown.trim_end())
}
