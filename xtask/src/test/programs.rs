//! Every test of the workspace: cargo builds the programs, and some of them run at a time.
//!
//! cargo would run one after the other, and the last tests of each, which wait for a timer more often than not, would have the
//! machine for themselves. The tests together compute for a quarter of the time that they take one by one, so several times as
//! many as there are processors run at a time, the longest programs first. What measures time runs after the others, alone.
//! Invariant: all that cargo has built is run, also after one that fails. Not here: tests in documentation, which cargo runs itself.

use super::{HEAD, linted, nats};
use crate::run::{self, Counts};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const BUILD: &str =
    "cargo test --workspace --features acpd/nats --locked --no-run --message-format json-render-diagnostics";
const DOCUMENTED: &str = "cargo test --workspace --features acpd/nats --locked --no-fail-fast --doc";
/// Programs that run at a time.
const AT_ONCE: usize = 3;
/// Tests that a program runs at a time: nearly all wait for processes, sockets and timers.
const THREADS: usize = 3;

/// How long a program may take: ten times what the longest takes on a slow machine, since that may be busy with other things too.
const LIMIT: Duration = Duration::from_mins(20);

/// Programs whose tests measure time.
const ALONE: [&str; 1] = ["promptness"];

/// The programs that take longest, by the time of all their tests: begun last, they would run by themselves at the end.
const LONGEST: [&str; 14] = [
    "daemon_cli",
    "log",
    "lifecycle",
    "e2e",
    "strain",
    "gate",
    "acpd_eventlog",
    "golden",
    "fleet",
    "continuity",
    "ending",
    "endure",
    "network",
    "fleet_schedules",
];

/// One program of tests.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Program {
    /// The package's directory, in which it runs.
    package: PathBuf,
    /// The name of the library, the binary or the file of tests.
    name: String,
    file: PathBuf,
}

impl Program {
    /// Its place in the order of starts.
    fn rank(&self) -> usize {
        LONGEST.iter().position(|name| *name == self.name).unwrap_or(LONGEST.len())
    }
}

/// What the programs run beside.
#[derive(Clone, Copy)]
struct Around<'a> {
    root: &'a Path,
    /// The program of the NATS server.
    server: &'a Path,
}

pub(super) fn run(root: &Path, counts: &mut Counts) -> Result<()> {
    let mut programs = build(root)?;
    programs.sort_by_key(Program::rank);
    let around = Around { root, server: &nats::server(root)? };
    ensure!(!programs.is_empty(), "cargo has built no test");
    let (alone, others): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|program| ALONE.contains(&program.name.as_str()));
    let mut failures = Vec::new();
    for (programs, at_once) in [(others, AT_ONCE), (alone, 1)] {
        failures.extend(run_all(programs, at_once, around, counts));
    }
    if let Err(error) = run::run(linted(DOCUMENTED, root), counts) {
        failures.push(format!("{error:#}"));
    }
    match failures.is_empty() {
        true => Ok(()),
        false => bail!("{}", failures.join("\n")),
    }
}

/// Runs so many at a time; says what failed.
fn run_all(programs: Vec<Program>, at_once: usize, around: Around<'_>, counts: &mut Counts) -> Vec<String> {
    let queue = Mutex::new(programs.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let (mut counts, mut failed) = (Counts::default(), Vec::new());
        while let Some(program) = next() {
            if let Err(error) = run_one(&program, around, &mut counts) {
                failed.push(format!("{error:#}"));
            }
        }
        (counts, failed)
    };
    let workers = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().map(|worker| worker.join());
        done.collect::<Vec<_>>()
    });
    let mut failures = Vec::new();
    for worker in workers {
        let (counted, failed) = worker.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        *counts += counted;
        failures.extend(failed);
    }
    failures
}

fn run_one(program: &Program, around: Around<'_>, counts: &mut Counts) -> Result<()> {
    let mut command = run::command(&program.file);
    // As cargo does it.
    command.current_dir(&program.package).env("CARGO_MANIFEST_DIR", &program.package);
    command.env(nats::VARIABLE, around.server);
    command.env("RUST_TEST_THREADS", THREADS.to_string());
    let package = program.package.strip_prefix(around.root).unwrap_or(&program.package);
    let head = format!("\n{HEAD}[test]{HEAD:#} {}: {}", package.display(), program.name);
    run::run_apart(command, Some(LIMIT), &head, counts)
}

/// Builds them, and gives them in the order of their packages.
fn build(root: &Path) -> Result<Vec<Program>> {
    let mut command = linted(BUILD, root);
    let output =
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "{BUILD} ended with {}", output.status);
    let lines = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    let mut programs: Vec<Program> = lines.lines().filter_map(built).collect();
    programs.sort();
    Ok(programs)
}

/// The program of tests that a message of cargo tells of.
fn built(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let manifest = PathBuf::from(text(&message["manifest_path"])?);
    Some(Program {
        package: manifest.parent()?.to_owned(),
        name: text(&message["target"]["name"])?,
        file: text(&message["executable"])?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_programs_begin_first_and_others_stay_in_order() {
        let program = |name: &str| Program { package: "/p".into(), name: name.to_owned(), file: "/t".into() };
        let mut programs: Vec<Program> = ["acpd", "e2e", "wire", "daemon_cli"].map(program).into();
        programs.sort_by_key(Program::rank);
        let names: Vec<&str> = programs.iter().map(|program| &*program.name).collect();
        assert_eq!(names, ["daemon_cli", "e2e", "acpd", "wire"]);
    }

    #[test]
    fn programs_of_tests_are_found_among_what_cargo_tells() {
        let program = |reason: &str, is_test: bool, executable: &str| {
            let line = format!(
                r#"{{"reason":"{reason}","manifest_path":"/p/Cargo.toml","target":{{"name":"t"}},"profile":{{"test":{is_test}}},
                "executable":{executable}}}"#
            );
            built(&line.replace('\n', " "))
        };
        let found = Program { package: "/p".into(), name: "t".to_owned(), file: "/t".into() };
        assert_eq!(program("compiler-artifact", true, "\"/t\""), Some(found));
        assert_eq!(program("compiler-artifact", false, "\"/t\""), None, "what is tested");
        assert_eq!(program("compiler-artifact", true, "null"), None, "a library");
        assert_eq!(program("build-finished", true, "\"/t\""), None);
        assert_eq!(built("warning: this is no JSON"), None);
    }
}
