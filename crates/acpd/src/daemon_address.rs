//! Where the daemon of a state directory listens beside its socket, for commands that tell it.
//!
//! The daemon notes the URL in `daemon.address`. Owned by the daemon; commands only look, and only when the daemon answers.
//! Not here: how it is reached, which a command is told by a flag, a variable or the configuration.

use crate::clean::line;
use crate::daemon_config::{NOTE_BYTES, leave};
use acpd_supervisor::read_regular;
use std::path::{Path, PathBuf};

/// Characters of a URL that are shown.
const SHOWN: usize = 300;

fn place(state_dir: &Path) -> PathBuf {
    state_dir.join("daemon.address")
}

/// Notes that it listens there.
pub(crate) fn note(state_dir: &Path, url: &str) {
    leave(&place(state_dir), format!("{url}\n").as_bytes());
}

/// Takes the note away: nothing listens any more.
pub(crate) fn forget(state_dir: &Path) {
    let _gone = std::fs::remove_file(place(state_dir));
}

/// What the daemon of a state directory has noted.
pub(crate) fn of(state_dir: &Path) -> Option<String> {
    let read = read_regular(&place(state_dir), NOTE_BYTES).ok()?;
    Some(line(String::from_utf8(read).ok()?.trim(), SHOWN)).filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: what is noted is found, until it is taken away, and drives no terminal
    #[test]
    fn a_note_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(of(dir.path()), None);
        note(dir.path(), "http://127.0.0.1:2273");
        assert_eq!(of(dir.path()).as_deref(), Some("http://127.0.0.1:2273"));
        note(dir.path(), "x\u{1b}[2J");
        assert!(of(dir.path()).is_some_and(|url| !url.contains('\u{1b}')));
        for empty in ["", "\n"] {
            std::fs::write(place(dir.path()), empty).expect("a file");
            assert_eq!(of(dir.path()), None);
        }
        forget(dir.path());
        assert!(!place(dir.path()).exists());
    }
}
