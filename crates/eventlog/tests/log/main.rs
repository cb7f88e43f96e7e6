//! What a log does: each test runs over session files that survive the death of every process, and over those that survive the loss of
//! power.

#![expect(clippy::duplicate_mod, reason = "each of them runs with each durability")]

/// All tests with one durability.
macro_rules! tests_with {
    ($durability:ident) => {
        fn options() -> acpd_eventlog::Options {
            acpd_eventlog::Options {
                durability: acpd_eventlog::Durability::$durability,
                ..acpd_eventlog::Options::default()
            }
        }

        #[path = "adoption.rs"]
        mod adoption;
        #[path = "checkpoint.rs"]
        mod checkpoint;
        #[path = "crash.rs"]
        mod crash;
        #[path = "follow.rs"]
        mod follow;
        #[path = "index.rs"]
        mod index;
        #[path = "model.rs"]
        mod model;
        #[path = "opening.rs"]
        mod opening;
        #[path = "outbox.rs"]
        mod outbox;
        #[path = "partial.rs"]
        mod partial;
        #[path = "removing.rs"]
        mod removing;
        #[path = "renaming.rs"]
        mod renaming;
        #[path = "search.rs"]
        mod search;
    };
}

mod on_files;
mod on_power;

/// Bytes of what the sessions of a log are in.
fn stored_bytes(dir: &std::path::Path) -> u64 {
    bytes_of(&dir.join("sessions"))
}

/// The index of a log.
fn index(dir: &std::path::Path) -> std::path::PathBuf {
    dir.join("index-1.db")
}

/// The name of a test among all: behind that of this program, its module's path.
fn test_name(module: &str, test: &str) -> String {
    let (_, module) = module.split_once("::").expect("it is in a module");
    format!("{module}::{test}")
}

/// Bytes of a file, or of all below a directory.
fn bytes_of(path: &std::path::Path) -> u64 {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| bytes_of(&entry.expect("it is read").path())).sum(),
        Err(_) => std::fs::metadata(path).expect("it is there").len(),
    }
}
