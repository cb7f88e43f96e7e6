//! `cargo xtask test`: everything that has to hold before a change is done, in one command.
//!
//! First what the machine must have, then the steps in order, up to the first that fails; last a table of the
//! steps and one line that counts the tests. What needs the binaries and nothing else of one another runs in two lanes side by
//! side, each step in a process of its own, whose output is shown at its end. Invariant: the line `N passed, 0 failed` appears
//! only when every selected step passed. CI has no other definition of "passes" than this.

mod lanes;
mod nats;
mod needs;
mod packages;
mod programs;
mod rest;

use crate::outside::{beside, path, target_directory};
use crate::run::{self, Counts};
use crate::{BAD, GOOD, book, inspector, tidy};
use anstyle::{AnsiColor, Style};
use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What the command line says.
#[derive(Args)]
pub(crate) struct Options {
    /// First install what is missing, on Debian 12 or 13 (never through sudo: says what to run instead)
    #[arg(long)]
    install: bool,
    /// Run these steps only; `test` brings `build` with it
    #[arg(long, value_delimiter = ',', value_name = "STEP,...")]
    only: Vec<Step>,
    /// This is a step of a lane: the binaries are built, and its end is told by its exit code.
    #[arg(long, hide = true)]
    in_lane: bool,
}

/// One step; declared in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Step {
    /// Formatting
    Fmt,
    /// The house rules (`cargo xtask tidy`)
    Tidy,
    /// The real binaries, which the end-to-end tests start; linted, warnings denied
    Build,
    /// Every test of the workspace; linted too
    Test,
    /// The packages: each is installed into an empty place, and the quick start is run from there
    Packages,
    /// API documentation, warnings denied
    Doc,
    /// The peers under interop/, each a workspace of its own
    Interop,
    /// REST against its own description, by requests that a tool makes up
    Rest,
    /// The client packages under sdk/
    Sdk,
    /// The book, and every sample of its pages and of the README
    Book,
    /// The inspector's pages: built anew and compared with what is packed, then in a browser
    Web,
}

const HEAD: Style = AnsiColor::Cyan.on_default().bold();
/// What steps build: with fleets, as packages have them.
/// With examples, which have what tests have: without, tests would build runtime, HTTP and most of our crates anew.
const BUILD: &str = "cargo build --workspace --bins --examples --features acpd/nats --locked";
const DOC: &str = "cargo doc --workspace --no-deps --lib --bin xtask --features acpd/nats --locked";
const TEST: &str = "cargo test --workspace --locked --no-fail-fast";

/// A build by cargo in which clippy compiles what is ours, as `cargo clippy` has it look at that: lints and code come of one pass, where
/// `cargo clippy` reads all that is ours, and all libraries, once more, two minutes.
fn linted(words: &str, root: &Path) -> Command {
    let mut command = run::line(words, root);
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    command
}

impl Step {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What this step runs in the repository at `root`.
    fn commands(self, root: &Path) -> Vec<Command> {
        let mut command = match self {
            Self::Fmt => run::line("cargo fmt --all --check", root),
            Self::Build => linted(BUILD, root),
            Self::Doc => run::line(DOC, root),
            // Of this program.
            Self::Tidy | Self::Test | Self::Packages | Self::Rest | Self::Book => return Vec::new(),
            Self::Interop => return peers(root).iter().flat_map(|dir| peer_commands(dir, root)).collect(),
            Self::Sdk => return sdk_commands(root),
            Self::Web => return ["npm test", "npm run e2e"].map(|line| beside(line, "web", root)).into(),
        };
        if self == Self::Doc {
            command.env("RUSTDOCFLAGS", "-D warnings");
        }
        vec![command]
    }
}

/// The steps to run: all, or those asked for and what they stand on.
fn selected(only: &[Step]) -> Vec<Step> {
    // A stale binary would make the end-to-end tests lie.
    let brings_build = |step: &Step| {
        matches!(
            step,
            Step::Packages | Step::Test | Step::Interop | Step::Rest | Step::Sdk | Step::Book | Step::Web
        )
    };
    let is_selected = |step: &Step| {
        only.is_empty() || only.contains(step) || (*step == Step::Build && only.iter().any(brings_build))
    };
    Step::value_variants().iter().copied().filter(is_selected).collect()
}

/// The directories under `interop/` that are workspaces, in order of their names.
fn peers(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("interop")).into_iter().flatten();
    let mut dirs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    dirs.sort();
    dirs
}

fn peer_commands(dir: &Path, root: &Path) -> Vec<Command> {
    let of = |manifest: &str, lines: &[&str]| -> Vec<Command> {
        let is_there = dir.join(manifest).exists();
        lines.iter().filter(|_| is_there).map(|line| run::line(line, dir)).collect()
    };
    // Lints take a second build of all that a peer stands on, a minute: they are looked at by hand.
    let mut commands = of("Cargo.toml", &["cargo fmt --all --check", TEST]);
    commands.extend(of("package.json", &["npm ci", "npm test"]));
    for command in &mut commands {
        // Half of what a peer is built of is built already.
        command.env("PATH", path(root)).env("CARGO_TARGET_DIR", target_directory(root));
    }
    commands
}

fn sdk_commands(root: &Path) -> Vec<Command> {
    let mut python = beside("python3 check.py", "sdk/python", root);
    python.arg(target_directory(root).join("sdk-python"));
    let typescript = ["npm ci", "npm test"].map(|line| beside(line, "sdk/typescript", root));
    typescript.into_iter().chain([python]).collect()
}

/// A step that was to run.
struct Row {
    step: Step,
    /// None: it did not run.
    time: Option<Duration>,
    is_good: bool,
}

/// What became of some steps.
#[derive(Default)]
struct Outcome {
    rows: Vec<Row>,
    failure: Option<(Step, anyhow::Error)>,
    counts: Counts,
}

impl Outcome {
    /// Runs a step by `perform`, unless one before has failed.
    fn step(&mut self, step: Step, perform: impl FnOnce(&mut Counts) -> Result<()>) {
        if self.failure.is_some() {
            return self.skip(step);
        }
        let started = now();
        self.failure = perform(&mut self.counts).err().map(|error| (step, error));
        self.rows.push(Row { step, time: Some(started.elapsed()), is_good: self.failure.is_none() });
    }

    fn skip(&mut self, step: Step) {
        self.rows.push(Row { step, time: None, is_good: false });
    }
}

/// Runs the command; true when everything passed.
pub(crate) fn run(options: &Options, root: &Path) -> Result<bool> {
    if let (true, &[step]) = (options.in_lane, &options.only[..]) {
        return perform(step, root, &mut Counts::default()).map(|()| true);
    }
    let steps = selected(&options.only);
    needs::check(&steps, root, options.install)?;
    let (one_by_one, lanes) = lanes::split(&steps);
    let mut outcome = Outcome::default();
    for step in one_by_one {
        outcome.step(step, |counts| perform(step, root, counts));
    }
    lanes::run(&lanes, root, &mut outcome);
    let Outcome { rows, failure, counts } = outcome;
    anstream::println!("\n{}", table(&rows));
    let Some((step, error)) = failure else {
        anstream::println!("{GOOD}{}{GOOD:#}", closing(&steps, counts));
        return Ok(true);
    };
    if counts != Counts::default() {
        anstream::println!("tests until then: {} good, {} bad", counts.passed, counts.failed);
    }
    let step = step.name();
    anstream::println!(
        "{BAD}failed at step {step}{BAD:#}: {error:#}\nagain with: cargo xtask test --only {step}"
    );
    Ok(false)
}

fn perform(step: Step, root: &Path, counts: &mut Counts) -> Result<()> {
    let before = *counts;
    let head = format!("\n{HEAD}[{}]{HEAD:#}", step.name());
    if step == Step::Web {
        anstream::println!("{head} cargo xtask inspector --check");
        ensure!(inspector::run(&inspector::Options { check: true }, root)?, "the packed pages are stale");
    }
    for command in step.commands(root) {
        anstream::println!("{head} {}", run::command_line(&command));
        run::run(command, counts)?;
    }
    match step {
        Step::Tidy => {
            anstream::println!("{head} cargo xtask tidy");
            ensure!(tidy::run(root)?, "rules are broken");
        }
        Step::Book => {
            anstream::println!("{head} cargo xtask book");
            ensure!(
                book::run(&book::Options { is_built: true, ..Default::default() }, root)?,
                "samples are not as said"
            );
        }
        Step::Test => programs::run(root, counts)?,
        // What tests panics.
        Step::Packages | Step::Rest => {
            anstream::println!("{head}");
            let run = if step == Step::Rest { rest::run } else { packages::run };
            std::panic::catch_unwind(|| run(root)).unwrap_or_else(|_| bail!("it panicked"))?;
        }
        _ => {}
    }
    ensure!(step != Step::Test || *counts != before, "no test ran");
    Ok(())
}

/// A line for each step, with its time if it ran, and whether it was well.
fn table(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let (word, style) = match (row.time, row.is_good) {
            (None, _) => ("not run", Style::new()),
            (_, true) => ("ok", GOOD),
            (_, false) => ("FAILED", BAD),
        };
        let time = row.time.map(|time| format!("{:8.1} s", time.as_secs_f64())).unwrap_or_default();
        format!("  {:<8} {style}{word:<7}{style:#}{time}\n", row.step.name())
    };
    rows.iter().map(line).collect()
}

/// The last line of a run in which everything passed.
fn closing(steps: &[Step], counts: Counts) -> String {
    if steps.iter().any(|step| matches!(step, Step::Test | Step::Interop | Step::Sdk | Step::Web)) {
        format!("{} passed, {} failed", counts.passed, counts.failed)
    } else {
        "passed; no step that runs tests was selected".to_owned()
    }
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "this is a shell: it only shows how long steps take")]
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_keeps_the_order_and_test_brings_the_binaries() {
        let names: Vec<String> = selected(&[]).into_iter().map(Step::name).collect();
        assert_eq!(
            names,
            ["fmt", "tidy", "build", "test", "packages", "doc", "interop", "rest", "sdk", "book", "web"]
        );
        assert_eq!(selected(&[Step::Tidy, Step::Fmt]), [Step::Fmt, Step::Tidy]);
        assert_eq!(selected(&[Step::Test]), [Step::Build, Step::Test]);
    }

    #[test]
    fn a_build_is_linted_and_warnings_are_denied() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let write = |file: &str, text: &str| std::fs::write(root.path().join(file), text).expect("writable");
        let manifest =
            "[package]\nname = \"linted\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n";
        write("Cargo.toml", manifest);
        let build = || {
            let mut command = linted("cargo build --offline", root.path());
            let output = command.env("CARGO_TARGET_DIR", root.path().join("target")).output();
            output.expect("cargo starts")
        };
        write("lib.rs", "pub fn five() -> u32 {\n    return 5;\n}\n");
        let refused = build();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("-D clippy::needless-return"), "{said}");
        write("lib.rs", "pub fn five() -> u32 {\n    5\n}\n");
        assert!(build().status.success());
    }

    #[test]
    fn each_workspace_under_interop_is_found_and_nothing_else() {
        let root = tempfile::tempdir().expect("a temporary directory");
        assert!(Step::Interop.commands(root.path()).is_empty());
        for (dir, file) in [("notes", "README.md"), ("rust", "Cargo.toml"), ("typescript", "package.json")] {
            let dir = root.path().join("interop").join(dir);
            std::fs::create_dir_all(&dir).expect("writable");
            std::fs::write(dir.join(file), "").expect("writable");
        }
        let commands = Step::Interop.commands(root.path());
        let shown: Vec<String> = commands.iter().map(run::command_line).collect();
        assert_eq!(shown.len(), 4);
        assert!(shown[1].ends_with(r#""cargo" "test" "--workspace" "--locked" "--no-fail-fast""#));
        assert!(shown[2].contains("interop/typescript") && shown[2].ends_with(r#""npm" "ci""#));
    }

    #[test]
    fn the_end_counts_tests_and_has_a_row_for_each_step_also_for_those_not_run() {
        let counts = Counts { passed: 12, failed: 0 };
        assert_eq!(closing(&[Step::Fmt, Step::Test], counts), "12 passed, 0 failed");
        assert!(!closing(&[Step::Fmt], counts).contains("0 failed"));
        let row = |step, millis: Option<u64>, is_good| Row {
            step,
            time: millis.map(Duration::from_millis),
            is_good,
        };
        let second = Some(1500);
        let rows =
            [row(Step::Fmt, second, true), row(Step::Tidy, second, false), row(Step::Test, None, true)];
        let text = anstream::adapter::strip_str(&table(&rows)).to_string();
        assert_eq!(text, "  fmt      ok          1.5 s\n  tidy     FAILED      1.5 s\n  test     not run\n");
    }
}
