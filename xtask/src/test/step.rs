//! The steps of `cargo xtask test`: their order and the commands behind each.
//!
//! Not here: running them. A step is the same for a person and for CI.

use super::node;
use crate::child::CommandLine;
use clap::ValueEnum;
use std::fmt;
use std::path::{Path, PathBuf};

/// One step; declared in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Step {
    /// Formatting
    Fmt,
    /// The house rules (`cargo xtask tidy`)
    Tidy,
    /// Lints, warnings denied
    Clippy,
    /// The real binaries, which the end-to-end tests start
    Build,
    /// Every test of the workspace
    Test,
    /// API documentation, warnings denied
    Doc,
    /// The peers under interop/, each a workspace of its own
    Interop,
    /// REST against its own description, by requests that a tool makes up
    Rest,
}

/// What a step does.
pub(super) enum Work {
    /// Runs these in order.
    Commands(Vec<CommandLine>),
    /// Checks the tree in this process.
    Tidy,
    /// Starts the daemon from this process.
    Rest,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Build => "build",
            Self::Test => "test",
            Self::Doc => "doc",
            Self::Tidy => "tidy",
            Self::Interop => "interop",
            Self::Rest => "rest",
        })
    }
}

impl Step {
    /// What this step does in the repository at `root`.
    pub(super) fn work(self, root: &Path) -> Work {
        let cargo = |args: &str| CommandLine::new("cargo", args, root);
        Work::Commands(match self {
            Self::Fmt => vec![cargo("fmt --all --check")],
            Self::Clippy => vec![cargo("clippy --workspace --all-targets --locked -- -D warnings")],
            Self::Build => vec![cargo("build --workspace --bins --locked")],
            Self::Test => {
                let line = cargo("test --workspace --locked --no-fail-fast");
                vec![line.with_env("RUST_TEST_THREADS", threads())]
            }
            Self::Doc => {
                vec![cargo("doc --workspace --no-deps --locked").with_env("RUSTDOCFLAGS", "-D warnings")]
            }
            Self::Tidy => return Work::Tidy,
            Self::Rest => return Work::Rest,
            Self::Interop => {
                let tools = node::tools(root);
                let lines = peers(root).into_iter().flat_map(|dir| peer_commands(&dir));
                lines.map(|line| line.with_tools(tools.as_deref())).collect()
            }
        })
    }
}

/// How many tests run at once: one more than there are processors, because many wait for processes and timers.
fn threads() -> String {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    (processors + 1).to_string()
}

/// The steps to run: all, or those asked for and what they stand on.
pub(super) fn selected(only: &[Step]) -> Vec<Step> {
    let all = Step::value_variants();
    if only.is_empty() {
        return all.to_vec();
    }
    // A stale binary would make the end-to-end tests lie.
    let brings_build = |step: &Step| matches!(step, Step::Test | Step::Interop | Step::Rest);
    all.iter()
        .copied()
        .filter(|step| only.contains(step) || (*step == Step::Build && only.iter().any(brings_build)))
        .collect()
}

/// The directories under `interop/` that are workspaces, in order of their names.
pub(super) fn peers(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root.join("interop")) else { return Vec::new() };
    let is_peer = |dir: &PathBuf| dir.join("Cargo.toml").exists() || dir.join("package.json").exists();
    let mut dirs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_peer).collect();
    dirs.sort();
    dirs
}

fn peer_commands(dir: &Path) -> Vec<CommandLine> {
    let mut lines = Vec::new();
    if dir.join("Cargo.toml").exists() {
        lines.extend(
            [
                "fmt --all --check",
                "clippy --workspace --all-targets --locked -- -D warnings",
                "test --workspace --locked --no-fail-fast",
            ]
            .map(|args| CommandLine::new("cargo", args, dir)),
        );
    }
    if dir.join("package.json").exists() {
        lines.extend(["ci", "test"].map(|args| CommandLine::new("npm", args, dir)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_selection_every_step_runs_in_order() {
        let names: Vec<String> = selected(&[]).iter().map(Step::to_string).collect();
        assert_eq!(names, ["fmt", "tidy", "clippy", "build", "test", "doc", "interop", "rest"]);
    }

    #[test]
    fn a_selection_keeps_the_order_and_test_brings_the_binaries() {
        assert_eq!(selected(&[Step::Clippy, Step::Fmt]), [Step::Fmt, Step::Clippy]);
        assert_eq!(selected(&[Step::Test]), [Step::Build, Step::Test]);
    }

    #[test]
    fn step_names_are_those_of_the_command_line() {
        for step in Step::value_variants() {
            let name = step.to_possible_value().expect("no step is hidden");
            assert_eq!(name.get_name(), step.to_string());
        }
    }

    #[test]
    fn each_workspace_under_interop_is_found_and_nothing_else() {
        let root = tempfile::tempdir().expect("a temporary directory");
        assert!(peers(root.path()).is_empty());
        for dir in ["rust", "notes", "typescript"] {
            std::fs::create_dir_all(root.path().join("interop").join(dir)).expect("writable");
        }
        std::fs::write(root.path().join("interop/rust/Cargo.toml"), "").expect("writable");
        std::fs::write(root.path().join("interop/typescript/package.json"), "").expect("writable");
        let Work::Commands(lines) = Step::Interop.work(root.path()) else { panic!("interop runs commands") };
        let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 5);
        assert!(shown[2].ends_with("rust: cargo test --workspace --locked --no-fail-fast"), "{}", shown[2]);
        assert!(shown[3].ends_with("typescript: npm ci"), "{}", shown[3]);
    }
}
