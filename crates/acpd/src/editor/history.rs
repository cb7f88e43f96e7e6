//! The lines that were written before, in a file of the state directory.
//!
//! Owned by the editor. Invariants: the file is its owner's alone, and bounded; without it there is a history of this
//! process alone. A line that begins with a space is not kept, nor is one like the last, nor one that is very long.

use rustyline::Config;
use rustyline::history::{FileHistory, History as _, SearchDirection};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Its name in the state directory.
const FILE: &str = "chat_history";
/// Lines that are kept.
const LINES: usize = 1000;
/// The longest line that is kept, in bytes.
const LONGEST: usize = 16 << 10;
/// A file that is larger was not written here.
const LARGEST: u64 = (LINES * LONGEST * 2) as u64;

/// Lines, the oldest first.
pub(crate) struct History {
    lines: FileHistory,
    file: Option<PathBuf>,
}

impl Default for History {
    fn default() -> Self {
        let config = Config::builder()
            .max_history_size(LINES)
            .and_then(|config| config.history_ignore_dups(true))
            .map(|config| config.history_ignore_space(true).build())
            .unwrap_or_default();
        Self { lines: FileHistory::with_config(&config), file: None }
    }
}

impl History {
    /// The history of a state directory, which is there. What cannot be read is none.
    pub(crate) fn open(state_dir: &Path) -> Self {
        let file = state_dir.join(FILE);
        let mut history = Self::default();
        match std::fs::metadata(&file) {
            Ok(found) if found.len() > LARGEST => {
                tracing::warn!(file = %file.display(), "this history is too large to be read, and is not written");
                return history;
            }
            Ok(_) => {
                // A copy may have come with another mode.
                let _refused = std::fs::set_permissions(&file, Permissions::from_mode(0o600));
                if let Err(error) = history.lines.load(&file) {
                    tracing::warn!(file = %file.display(), %error, "the history cannot be read");
                }
            }
            Err(_) => {}
        }
        history.file = Some(file);
        history
    }

    pub(super) fn add(&mut self, line: &str) {
        if line.len() > LONGEST || line.trim().is_empty() {
            return;
        }
        let added = self.lines.add(line);
        if let (Ok(true), Some(file)) = (added, &self.file)
            && let Err(error) = self.lines.append(file)
        {
            tracing::info!(file = %file.display(), %error, "the history cannot be written");
            self.file = None;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<String> {
        let found = self.lines.get(at, SearchDirection::Forward).ok().flatten()?;
        Some(found.entry.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(history: &History) -> Vec<String> {
        (0..history.len()).filter_map(|at| history.get(at)).collect()
    }

    // contract 7.1: the history is in the state directory, private, and of all chats
    #[test]
    fn the_history_outlives_the_chat() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut one, mut other) = (History::open(dir.path()), History::open(dir.path()));
        one.add("first\nwith two rows \\ and a backslash");
        other.add("second");
        one.add(" hidden");
        one.add(&"long".repeat(LONGEST));
        one.add("third");
        let expected = ["first\nwith two rows \\ and a backslash", "second", "third"];
        assert_eq!(lines(&History::open(dir.path())), expected);
        let file = dir.path().join(FILE);
        let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("it is ours");
        drop(History::open(dir.path()));
        assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    }

    // contract 7.1: the history is bounded
    #[test]
    fn the_oldest_lines_go() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(dir.path());
        (0..LINES + 5).for_each(|number| history.add(&number.to_string()));
        let kept = lines(&History::open(dir.path()));
        assert_eq!((kept.len(), kept[0].as_str(), kept[LINES - 1].as_str()), (LINES, "5", "1004"));
    }
}
