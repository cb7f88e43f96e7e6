//! Whether a known agent is installed: its program in the directories of a `PATH`, of the right package.

use crate::known::{KNOWN, Known, Package};
use crate::package::{Owner, owner};
use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A known agent that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its program.
    pub file: PathBuf,
    /// The program is what its name alone would run.
    pub is_first: bool,
    /// The package of the program, where that can be told.
    pub owner: Option<Owner>,
}

/// Why a known agent is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// No directory of `PATH` has the program.
    NoProgram,
    /// The program of that name is the one of this agent.
    Program(&'static Known),
}

/// The programs of that name in the directories of `path`, in their order.
fn programs_in(path: &OsStr, program: &str) -> Vec<PathBuf> {
    // An empty or relative one means a place that changes.
    let dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    dirs.map(|dir| dir.join(program)).filter(|file| can_run(file)).collect()
}

/// The program of that name that `path` gives.
pub fn program_in(path: &OsStr, program: &str) -> Option<PathBuf> {
    programs_in(path, program).into_iter().next()
}

/// The file that a command of a configuration is, with this `path`; None when nothing would run.
pub fn to_run(command: &str, path: &OsStr) -> Option<PathBuf> {
    match command.contains('/') {
        true => Some(PathBuf::from(command)).filter(|file| can_run(file)),
        false => program_in(path, command),
    }
}

fn can_run(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

/// Looks for an agent. Where more than one agent has its program, the package of the program found decides; where that cannot
/// be told, the program is that of the first of them.
///
/// # Errors
/// It is not there, and why.
pub fn find(known: &'static Known, path: &OsStr) -> Result<Found, Absent> {
    let mut absent = Absent::NoProgram;
    for (at, file) in programs_in(path, known.program).into_iter().enumerate() {
        let (meant, owner) = whose(&file, known.program);
        if meant.name == known.name {
            return Ok(Found { file, is_first: at == 0, owner });
        }
        if at == 0 {
            absent = Absent::Program(meant);
        }
    }
    Err(absent)
}

/// The agent that a program is, and its package.
fn whose(file: &Path, program: &str) -> (&'static Known, Option<Owner>) {
    let candidates: Vec<&'static Known> = KNOWN.iter().filter(|known| known.program == program).collect();
    let packages: Vec<Package> = candidates.iter().map(|known| known.package).collect();
    let owner = owner(file, program, &packages);
    let of_package =
        owner.as_ref().and_then(|owner| candidates.iter().find(|known| known.package.name() == owner.name));
    let first = candidates.first().expect("the program is a known one's");
    (of_package.unwrap_or(first), owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known;
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    /// A directory of programs.
    fn program(dir: &TempDir, path: &str) -> PathBuf {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, "#!/bin/sh\n").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
        path
    }

    /// A program that a package of npm has put into a directory of programs.
    fn of_npm(dir: &TempDir, bin: &str, program_name: &str, package: &str, version: &str) {
        let home = format!("{bin}-lib/node_modules/{package}");
        let real = program(dir, &format!("{home}/dist/index.js"));
        let manifest = format!(
            r#"{{"name":"{package}","version":"{version}","bin":{{"{program_name}":"dist/index.js"}}}}"#
        );
        fs::write(dir.path().join(home).join("package.json"), manifest).expect("a file");
        fs::create_dir_all(dir.path().join(bin)).expect("a directory");
        symlink(real, dir.path().join(bin).join(program_name)).expect("a link");
    }

    fn path(dir: &TempDir, bins: &[&str]) -> OsString {
        std::env::join_paths(bins.iter().map(|bin| dir.path().join(bin))).expect("paths")
    }

    fn of(name: &str) -> &'static Known {
        known(name).expect("it is known")
    }

    // issue 14: the 14 are found by name when their program is in PATH
    #[test]
    fn every_agent_is_found_by_its_program() {
        let dir = tempfile::tempdir().expect("a directory");
        for known in KNOWN {
            program(&dir, &format!("{}/{}", known.name, known.program));
            let here = path(&dir, &["none", known.name]);
            let is_second = KNOWN.iter().any(|it| {
                it.program == known.program && it.package != known.package && {
                    let first = KNOWN.iter().find(|it| it.program == known.program).expect("itself");
                    first.name != known.name
                }
            });
            match find(known, &here) {
                Ok(found) => assert!(!is_second && found.is_first && found.owner.is_none(), "{}", known.name),
                // What cannot be told is the current one.
                Err(absent) => assert!(is_second && matches!(absent, Absent::Program(_)), "{}", known.name),
            }
            assert_eq!(find(known, &path(&dir, &["none"])), Err(Absent::NoProgram));
        }
    }

    // issue 14: where two entries have the same program, the package of the program found decides
    #[test]
    fn the_package_decides_between_two() {
        let dir = tempfile::tempdir().expect("a directory");
        of_npm(&dir, "old", "codex-acp", "@zed-industries/codex-acp", "0.16.0");
        of_npm(&dir, "new", "codex-acp", "@agentclientprotocol/codex-acp", "2.6.0");
        let version = |name: &str, bins: &[&str]| {
            let found = find(of(name), &path(&dir, bins))?;
            Ok((found.owner.expect("its package").version, found.is_first))
        };
        assert_eq!(version("codex", &["new"]), Ok(("2.6.0".to_owned(), true)));
        assert_eq!(version("codex-zed", &["new"]), Err(Absent::Program(of("codex"))));
        assert_eq!(version("codex-zed", &["old"]), Ok(("0.16.0".to_owned(), true)));
        assert_eq!(version("codex", &["old"]), Err(Absent::Program(of("codex-zed"))));
        // Both: each by the path that is its own.
        assert_eq!(version("codex", &["old", "new"]), Ok(("2.6.0".to_owned(), false)));
        assert_eq!(version("codex-zed", &["old", "new"]), Ok(("0.16.0".to_owned(), true)));
    }

    // issue 14: what this user cannot run is not installed, nor is what lies in a directory without a fixed place
    #[test]
    fn only_what_can_be_run_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = program(&dir, "bin/gemini");
        fs::create_dir(dir.path().join("bin/qwen")).expect("a directory");
        let here = path(&dir, &["bin"]);
        assert_eq!(find(of("qwen"), &here), Err(Absent::NoProgram));
        assert_eq!(to_run("gemini", &here).as_ref(), Some(&file));
        assert_eq!(to_run(file.to_str().expect("text"), OsStr::new("")).as_ref(), Some(&file));
        assert_eq!(find(of("gemini"), OsStr::new("bin:.::")), Err(Absent::NoProgram));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("its mode");
        assert_eq!(find(of("gemini"), &here), Err(Absent::NoProgram));
        assert_eq!(to_run(file.to_str().expect("text"), OsStr::new("")), None);
    }
}
