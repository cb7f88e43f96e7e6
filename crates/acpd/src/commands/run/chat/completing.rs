//! What a word can become: a command of the agent at the beginning of the line, a path below the session's directory
//! behind an `@`.
//!
//! Invariant: nothing outside of the directory is listed, and what is read of a directory is bounded.

use rustyline::completion::longest_common_prefix;
use std::path::{Component, Path};

/// Entries of a directory that are looked at.
const ENTRIES: usize = 2_000;
/// What can be chosen from is listed up to here.
pub(super) const LISTED: usize = 30;

/// What the word before the cursor can become.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// Where the part begins that is replaced.
    pub(super) start: usize,
    /// What it is replaced by.
    pub(super) text: String,
    /// What there is to choose from, if it is not decided.
    pub(super) choices: Vec<String>,
}

/// Completes the word before the cursor; `cwd` is None when its files are on another machine.
pub(super) fn complete(before: &str, commands: &[String], cwd: Option<&Path>) -> Option<Completion> {
    let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = &before[start..];
    let (start, mut found) = if let (0, Some(part)) = (start, word.strip_prefix('/')) {
        let is_meant = |command: &&String| command.starts_with(part);
        (1, commands.iter().filter(is_meant).cloned().collect::<Vec<_>>())
    } else {
        (start + 1, paths(cwd?, word.strip_prefix('@')?))
    };
    found.sort();
    if found.is_empty() {
        return None;
    }
    let common = longest_common_prefix(&found).unwrap_or_default().to_owned();
    let is_path_on = common.ends_with('/');
    match found.len() {
        1 if is_path_on => Some(Completion { start, text: common, choices: Vec::new() }),
        1 => Some(Completion { start, text: format!("{common} "), choices: Vec::new() }),
        _ => Some(Completion { start, text: common, choices: found }),
    }
}

/// Paths below a directory that begin like this; a directory ends with a slash.
fn paths(cwd: &Path, part: &str) -> Vec<String> {
    let (folder, name) = part.rsplit_once('/').map_or(("", part), |(folder, name)| (folder, name));
    let is_below = Path::new(folder).components().all(|one| matches!(one, Component::Normal(_)));
    if part.starts_with('/') || !is_below {
        return Vec::new();
    }
    let Ok(entries) = std::fs::read_dir(cwd.join(folder)) else { return Vec::new() };
    let path = |entry: std::fs::DirEntry| {
        let found = entry.file_name().into_string().ok()?;
        // A word ends at white space, and hidden files have to be asked for.
        let is_meant = found.starts_with(name)
            && (name.starts_with('.') || !found.starts_with('.'))
            && !found.contains(|c: char| c.is_whitespace() || c.is_control());
        let slash = if entry.path().is_dir() { "/" } else { "" };
        let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        is_meant.then(|| format!("{folder}{found}{slash}"))
    };
    entries.take(ENTRIES).filter_map(Result::ok).filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: `/` commands of the agent, `@` files below the directory
    #[test]
    fn words_are_completed() {
        let dir = tempfile::tempdir().expect("a directory");
        for file in ["readme.md", "real.txt", "src/main.rs", ".hidden", "with space"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
            std::fs::write(path, "").expect("a file");
        }
        let commands = ["review", "reset", "help"].map(str::to_owned);
        for (before, completed) in [
            ("/h", Some((1, "help ", 0))),
            ("/", Some((1, "", 3))),
            ("/re", Some((1, "re", 2))),
            ("/x", None),
            ("say /h", None),
            ("see @s", Some((5, "src/", 0))),
            ("see @src/", Some((5, "src/main.rs ", 0))),
            ("@re", Some((1, "rea", 2))),
            ("@", Some((1, "", 3))),
            ("@.h", Some((1, ".hidden ", 0))),
            ("@../", None),
            ("@/", None),
            ("@src/../", None),
            ("a@re", None),
            ("", None),
        ] {
            let completion = complete(before, &commands, Some(dir.path()));
            let shown = completion.as_ref().map(|one| (one.start, one.text.as_str(), one.choices.len()));
            assert_eq!(shown, completed, "{before:?}");
        }
        assert_eq!(complete("@re", &commands, None), None);
    }
}
