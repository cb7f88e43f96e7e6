//! The files of a state directory that daemons and sessions depend on, and that no command puts another in the place of.
//!
//! A file that takes the name of the log, or of what is locked, loses sessions: who has it open goes on with one that nobody finds.
//! Not here: who may use the directory, and what agents are served.

use std::io;
use std::path::Path;

/// The directories of them.
pub(crate) const DIRECTORIES: [&str; 7] = {
    let [copy, whole] = acpd_eventlog::migration::DIRECTORIES;
    ["hosts", "keepers", "sessions", "claims", "redo", copy, whole]
};
/// Those that are neither in one nor databases.
const FILES: [&str; 5] = {
    let [whole, damaged] = acpd_eventlog::migration::OLD_DATABASES;
    ["acpd.db-new", whole, damaged, "acpd.reserve", "daemon.lock"]
};
/// The endings of the names of a database and of what is beside it.
const ENDINGS: [&str; 5] = ["", "-wal", "-shm", "-journal", "-open"];

/// Those that are not in a directory of them.
pub(crate) fn files() -> impl Iterator<Item = String> {
    let databases = acpd_eventlog::DATABASES.into_iter();
    let databases = databases.flat_map(|name| ENDINGS.map(|ending| format!("{name}{ending}")));
    databases.chain(FILES.map(str::to_owned))
}

/// Fails if a path names one of them, in whichever state directory, and whether or not the file is there now.
pub(crate) fn refuse(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Without a directory there is nothing in the way.
    let (Ok(dir), Some(name)) = (dir.canonicalize(), path.file_name()) else { return Ok(()) };
    let is_state = |dir: &Path| acpd_eventlog::DATABASES.iter().any(|name| dir.join(name).exists());
    let names = |known: String| name.eq_ignore_ascii_case(known);
    let is_below = |dir: &Path| {
        let known = dir.file_name().is_some_and(|name| DIRECTORIES.iter().any(|known| name == *known));
        known && dir.parent().is_some_and(is_state)
    };
    match is_state(&dir) && files().any(names) || dir.ancestors().any(is_below) {
        true => Err(io::Error::other("a file that acpd keeps sessions in; name another one")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    // issue 28: by whatever way to it, and whether or not it is there; everything else may be written
    #[test]
    fn what_sessions_depend_on_is_known_by_its_place() {
        let top = tempfile::tempdir().expect("a directory");
        let state = top.path().join("state");
        let below = ["hosts", "keepers/one", "agents/hosts", "sessions/ab/one", "claims", "redo/0"];
        for dir in below.into_iter().chain(["migrating/sessions/ab/one", "migrated"]) {
            std::fs::create_dir_all(state.join(dir)).expect("a directory");
        }
        let here = |path: &str| refuse(&top.path().join(path)).is_err();
        assert!(!here("state/acpd.db-wal"), "it is no state directory");
        std::fs::write(state.join("acpd.db"), "").expect("a file");
        symlink(&state, top.path().join("link")).expect("a link");
        for file in files() {
            assert!(here(&format!("state/{file}")), "{file}");
            assert!(here(&format!("link/../state/agents/../{file}")), "{file}");
            assert!(!here(&file) && !here(&format!("state/agents/{file}")), "{file}");
        }
        for (path, expected) in [
            ("state/ACPD.DB", true),
            ("link/acpd.db", true),
            ("link/hosts/1", true),
            ("state/keepers/one/x", true),
            ("state/sessions/ab/one/1.log", true),
            ("state/sessions/x", true),
            ("state/claims/1", true),
            ("state/redo/0/1", true),
            ("state/migrating/sessions/ab/one/1.log", true),
            ("state/migrated/acpd.db", true),
            ("state/index-1.db-wal", true),
            ("state/hooks.db", true),
            ("state/agents/sessions", false),
            ("state/agents/hosts/x", false),
            ("state/config.toml", false),
            ("state/acpd.db.backup", false),
            ("state/session.jsonl", false),
            ("missing/acpd.db", false),
            ("state/..", false),
        ] {
            assert_eq!(here(path), expected, "{path}");
        }
        // Somebody has deleted the marker: the index still says whose the directory is.
        std::fs::rename(state.join("acpd.db"), state.join("index-1.db")).expect("it is there");
        assert!(here("state/acpd.db") && here("state/sessions/x"));
    }
}
