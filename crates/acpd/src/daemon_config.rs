//! Which configuration the daemon of a state directory goes by, for a person who wonders why it knows no such agent.
//!
//! The daemon notes it beside its lock, in `daemon.config`: the path of the file, or nothing when it goes by none; the
//! note is as old as the reading. Owned by the daemon; commands only look, and only when the daemon answers. Not here:
//! what is in a configuration.

use crate::commands::shown;
use acpd_supervisor::{open_regular, read_regular};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The longest note that is read, in bytes.
pub(crate) const NOTE_BYTES: u64 = 64 << 10;

fn place(state_dir: &Path) -> PathBuf {
    state_dir.join("daemon.config")
}

/// Notes that this file was read just now; None when there is none.
pub(crate) fn note(state_dir: &Path, file: Option<&Path>) {
    let file = file.map(|file| std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    leave(&place(state_dir), file.as_deref().unwrap_or(Path::new("")).as_os_str().as_bytes());
}

/// Leaves a note for commands of this user. The daemon works without.
pub(crate) fn leave(place: &Path, note: &[u8]) {
    let mut options = OpenOptions::new();
    let opened = open_regular(place, options.write(true).create(true).truncate(true).mode(0o600));
    if let Err(error) = opened.and_then(|mut file| file.write_all(note)) {
        tracing::debug!(%error, place = %place.display(), "cannot leave a note");
    }
}

/// Takes the note away: nothing is read any more.
pub(crate) fn forget(state_dir: &Path) {
    let _gone = std::fs::remove_file(place(state_dir));
}

/// What a daemon goes by.
#[derive(Debug, Clone)]
pub(crate) struct DaemonConfig {
    file: Option<PathBuf>,
    /// The file has changed since the daemon read it.
    changed: bool,
}

impl DaemonConfig {
    /// What the daemon of a state directory has noted. None when it has not.
    pub(crate) fn of(state_dir: &Path) -> Option<Self> {
        let read = read_regular(&place(state_dir), NOTE_BYTES).ok()?;
        let file = (!read.is_empty()).then(|| PathBuf::from(OsString::from_vec(read)));
        let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
        let changed = match &file {
            Some(file) => modified(file) > modified(&place(state_dir)),
            None => false,
        };
        Some(Self { file, changed })
    }

    /// Whether it has to be said that the daemon goes by something else than `given`, or by an older state of it.
    pub(crate) fn is_another(&self, given: Option<&Path>) -> bool {
        self.changed || given.is_some_and(|given| !self.goes_by(given))
    }

    /// Whether the daemon goes by this file, be it as it was.
    pub(crate) fn goes_by(&self, given: &Path) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        self.file.as_deref().is_some_and(|file| real(file) == real(given))
    }

    /// Whether there was no file when the daemon looked for one.
    pub(crate) fn has_none(&self) -> bool {
        self.file.is_none()
    }

    /// The file, where it has changed since the daemon read it.
    pub(crate) fn stale(&self) -> Option<String> {
        self.file.as_ref().filter(|_| self.changed).map(|file| shown(&file.to_string_lossy()))
    }

    /// The file, in words.
    pub(crate) fn file_words(&self) -> String {
        match &self.file {
            Some(file) if self.changed => {
                format!("{}, changed since; `acpd reload` makes it known", shown(&file.to_string_lossy()))
            }
            Some(file) => shown(&file.to_string_lossy()),
            None => "no file".to_owned(),
        }
    }

    /// Whose agents they are, and how the daemon comes to know others; `given` is the file that was named here.
    pub(crate) fn words(&self, given: Option<&Path>) -> String {
        let path = |path: &Path| shown(&path.to_string_lossy());
        let mut words = match &self.file {
            Some(file) if self.changed => {
                format!("the daemon goes by {} as it was before its last change", path(file))
            }
            Some(file) => format!("the daemon goes by {}", path(file)),
            None => "the daemon goes by no configuration file".to_owned(),
        };
        if let Some(given) = given.filter(|given| !self.goes_by(given)) {
            // It reads its own file only.
            words.push_str(&format!(
                ", not by {0}, which `--embedded` would use; stop it and start `acpd serve --config {0}` to change that",
                path(given)
            ));
            return words;
        }
        words.push_str("; `acpd reload` has it read its configuration anew");
        words
    }
}

/// The same for a daemon elsewhere, of which nothing is known.
pub(crate) const ELSEWHERE: &str =
    "the daemon goes by its own configuration, which `acpd reload` has it read anew";

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6, contract 7.1: a daemon's configuration is told from the one that was named, with the remedy
    #[test]
    fn whose_configuration_it_is_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, other) = (dir.path().join("a.toml"), dir.path().join("b.toml"));
        assert!(DaemonConfig::of(dir.path()).is_none());
        std::fs::write(&file, "").expect("a file");
        note(dir.path(), Some(&file));
        let config = DaemonConfig::of(dir.path()).expect("a note");
        assert!(
            !config.is_another(None) && !config.is_another(Some(&file)) && config.is_another(Some(&other))
        );
        assert_eq!(
            config.words(Some(&other)),
            format!(
                "the daemon goes by {}, not by {1}, which `--embedded` would use; stop it and start `acpd serve \
                 --config {1}` to change that",
                file.display(),
                other.display()
            )
        );
        let changed = DaemonConfig { changed: true, ..config };
        assert!(changed.is_another(Some(&file)));
        assert!(changed.words(Some(&file)).contains(" as it was before its last change; `acpd reload` "));
        note(dir.path(), None);
        let none = DaemonConfig::of(dir.path()).expect("a note");
        assert!(none.is_another(Some(&file)) && none.words(None).contains("no configuration file"));
        forget(dir.path());
        assert!(DaemonConfig::of(dir.path()).is_none());
    }
}
