//! How a state directory keeps its sessions, as any other program of its user sees it: by the names of files.
//!
//! The one place of the tests that knows those names. Invariant: nothing is made or changed here, but for a log of the old form
//! that a test asks for. Not here: the forms themselves (`acpd_eventlog`).

#[cfg(feature = "logs")]
use crate::old_database::make_old;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A form of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    /// One database of all sessions.
    Database,
    /// A directory of each session, of which a database is an index.
    Files,
}

impl LogForm {
    /// That of a state directory; None: it has no log.
    pub fn of(state: &Path) -> Option<Self> {
        let has = |name: &str| state.join(name).exists();
        match (has("sessions") || has("index-1.db"), has("acpd.db")) {
            // Beside session files there may be one for programs that know no others.
            (true, _) => Some(Self::Files),
            (false, true) => Some(Self::Database),
            (false, false) => None,
        }
    }

    /// The names of its databases: the one of sessions first.
    pub fn databases(self) -> &'static [&'static str] {
        match self {
            Self::Database => &["acpd.db"],
            Self::Files => &["index-1.db", "hooks.db"],
        }
    }

    /// The files of a state directory that its sessions are read from, the newest of each session first.
    pub fn session_files(self, state: &Path) -> Vec<PathBuf> {
        match self {
            Self::Database => {
                let names = ["acpd.db-wal", "acpd.db"].map(|name| state.join(name));
                names.into_iter().filter(|path| path.exists()).collect()
            }
            Self::Files => {
                let mut files = files_below(&state.join("sessions"));
                files.sort_by_key(|path| std::cmp::Reverse(segment_number(path)));
                files
            }
        }
    }
}

/// The last segment in a file of a session; 0: it has none.
fn segment_number(path: &Path) -> u32 {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = name
        .strip_suffix(".log")
        .or_else(|| name.strip_suffix(".seal")?.split_once('-').map(|range| range.1));
    stem.and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// The files below a directory, by name; none where there is no directory, or no longer.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let (mut files, mut dirs) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => dirs.push(entry.path()),
                Ok(_) => files.push(entry.path()),
                // It is gone again.
                Err(_) => {}
            }
        }
    }
    files.sort();
    files
}

/// The database of a state directory's sessions, or that is an index of them.
///
/// # Panics
/// When it has no log.
pub fn log_database(state: &Path) -> PathBuf {
    let form = LogForm::of(state).expect("there is a log");
    state.join(form.databases()[0])
}

/// The files of a state directory that its sessions are read from, the newest of each session first.
pub fn session_files(state: &Path) -> Vec<PathBuf> {
    LogForm::of(state).map_or_else(Vec::new, |form| form.session_files(state))
}

/// The files of one session.
///
/// # Panics
/// When its state directory keeps sessions in a database.
pub fn files_of_session(state: &Path, id: &str) -> Vec<PathBuf> {
    assert_eq!(LogForm::of(state), Some(LogForm::Files), "a database has no files of one session");
    let mut files = session_files(state);
    files.retain(|file| file.parent().is_some_and(|dir| dir.ends_with(id)));
    files
}

/// Bytes of the files that the sessions of a state directory are read from.
pub fn session_bytes(state: &Path) -> u64 {
    session_files(state).iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// What the log of a state directory that nobody uses has in its files, and their names.
///
/// # Panics
/// When one cannot be read.
pub fn log_content(state: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let form = LogForm::of(state).expect("there is a log");
    let databases = form.databases().iter().map(|name| state.join(name));
    let files = databases.chain(form.session_files(state)).filter(|path| path.exists());
    files.map(|path| (path.clone(), std::fs::read(path).expect("it can be read"))).collect()
}

/// Makes the log of a state directory, which nobody uses, one of the old form with the same sessions; without one if there is no log.
///
/// # Panics
/// When it cannot be made.
#[cfg(feature = "logs")]
pub fn make_database_log(state: &Path) {
    let make = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(make_old(state, |records| (0, records.to_vec()))).expect("it can be made");
    };
    // The caller may be inside a runtime.
    std::thread::scope(|scope| scope.spawn(make).join().expect("it does not panic"));
    assert_eq!(LogForm::of(state), Some(LogForm::Database));
}

#[cfg(test)]
mod tests {
    use super::*;

    // A test that looks at no file shows nothing.
    #[test]
    fn a_form_is_known_by_its_files() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!((LogForm::of(dir.path()), session_files(dir.path())), (None, Vec::new()));
        for name in ["sessions/a1/one/1-2.seal", "sessions/a1/one/3.log", "sessions/.new/host-1/1.log"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            std::fs::write(path, name).expect("written");
        }
        let names = |files: Vec<PathBuf>| {
            files
                .into_iter()
                .map(|file| file.strip_prefix(dir.path()).expect("below").to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(LogForm::of(dir.path()), Some(LogForm::Files));
        let of_one = names(files_of_session(dir.path(), "one"));
        assert_eq!(of_one, ["sessions/a1/one/3.log", "sessions/a1/one/1-2.seal"].map(PathBuf::from));
        assert_eq!(
            (names(session_files(dir.path())).len(), log_database(dir.path())),
            (3, dir.path().join("index-1.db"))
        );
        #[cfg(feature = "logs")]
        {
            let old = dir.path().join("old");
            make_database_log(&old);
            assert_eq!(
                (LogForm::of(&old), names(session_files(&old))),
                (Some(LogForm::Database), vec!["old/acpd.db".into()])
            );
        }
    }
}
