//! Paths that stay inside of a directory: of a program in an archive, and of the entries of archives.
//!
//! Pure, by the text alone: nothing below the directory may be a link then, which the unpacking sees to.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The longest path, in bytes, and the longest part of one: what file systems take.
const LONGEST: usize = 1024;
const LONGEST_PART: usize = 255;
/// Directories below each other at most.
const DEEPEST: usize = 64;

/// Why a path is not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InsideError {
    /// It begins at the root.
    #[error("\"{}\" is an absolute path; only paths inside of the archive are taken", .0.escape_debug())]
    Absolute(String),
    /// It leads out.
    #[error("\"{}\" leads out of the archive with \"..\"", .0.escape_debug())]
    Up(String),
    /// It has a character that is no part of a name everywhere.
    #[error("\"{}\" has a backslash or a control character in it", .0.escape_debug())]
    Characters(String),
    /// It is longer or deeper than file systems have it.
    #[error("\"{}...\" is too long or too deep", .0.escape_debug())]
    Long(String),
    /// Nothing is left of it.
    #[error("\"{}\" names no file", .0.escape_debug())]
    Empty(String),
}

/// A relative path of plain names, without `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct InsidePath(PathBuf);

impl InsidePath {
    /// Reads it; `./` before it and slashes behind it are left out.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn read(text: &str) -> Result<Self, InsideError> {
        let of = || text.chars().take(200).collect::<String>();
        if text.starts_with('/') {
            return Err(InsideError::Absolute(of()));
        }
        if text.contains(|c: char| c == '\\' || c.is_control()) {
            return Err(InsideError::Characters(of()));
        }
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return Err(InsideError::Up(of()));
        }
        if text.len() > LONGEST || parts.len() > DEEPEST || parts.iter().any(|part| part.len() > LONGEST_PART)
        {
            return Err(InsideError::Long(of()));
        }
        if parts.is_empty() {
            return Err(InsideError::Empty(of()));
        }
        Ok(Self(parts.iter().collect()))
    }

    /// The path, relative.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<String> for InsidePath {
    type Error = InsideError;

    fn try_from(text: String) -> Result<Self, InsideError> {
        Self::read(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 14: no path of an archive leaves it
    #[test]
    fn a_path_stays_inside() {
        for (text, path) in [("a", "a"), ("./a/b/", "a/b"), ("a//./b", "a/b"), ("..a/b..", "..a/b..")] {
            assert_eq!(InsidePath::read(text).expect(text).as_path(), Path::new(path));
        }
        let of = |text: &str| InsidePath::read(text).expect_err("no path").to_string();
        for (text, why) in [
            ("/etc/passwd", "absolute"),
            ("../a", "leads out"),
            ("a/../../b", "leads out"),
            ("a/..", "leads out"),
            ("a\\..\\b", "backslash"),
            ("a\0b", "control character"),
            ("a\nb", "control character"),
            ("", "names no file"),
            ("./.", "names no file"),
            (&"a/".repeat(65), "too deep"),
            (&"a".repeat(256), "too long"),
        ] {
            assert!(of(text).contains(why), "{text}: {}", of(text));
        }
    }
}
