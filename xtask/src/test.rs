//! `cargo xtask test`: everything that has to hold before a change is done, in one command.
//!
//! First what the machine must have, then the steps in order, up to the first that fails; last a table of the
//! steps and one line that counts the tests. Invariant: the line `N passed, 0 failed` appears only when every
//! selected step passed. Not here: what a step checks; CI has no other definition of "passes" than this.

mod needs;
mod node;
mod rest;
mod step;

use crate::child::{self, Counts, RunError};
use crate::{tidy, with_causes};
use anstyle::{AnsiColor, Style};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use step::{Step, Work};

/// What the command line says.
#[derive(Args)]
pub(crate) struct Options {
    /// First install what is missing, on Debian 12 or 13 (never through sudo: says what to run instead)
    #[arg(long)]
    install: bool,
    /// Run these steps only; `test` brings `build` with it
    #[arg(long, value_delimiter = ',', value_name = "STEP,...")]
    only: Vec<Step>,
}

/// How a step went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed(Duration),
    Failed(Duration),
    Nothing,
    NotRun,
}

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const HEAD: Style = AnsiColor::Cyan.on_default().bold();

/// Runs the command; true when everything passed.
pub(crate) fn run(options: &Options, root: &Path) -> bool {
    let steps = step::selected(&options.only);
    if let Err(error) = needs::check(&steps, root, options.install) {
        anstream::eprintln!("{BAD}{}{BAD:#}", with_causes(&error));
        return false;
    }
    let mut counts = Counts::default();
    let mut rows = Vec::new();
    let mut failure = None;
    for &step in &steps {
        if failure.is_some() {
            rows.push((step, Outcome::NotRun));
            continue;
        }
        let started = now();
        let result = perform(step, root, &mut counts);
        rows.push((
            step,
            match &result {
                Ok(true) => Outcome::Passed(started.elapsed()),
                Ok(false) => Outcome::Nothing,
                Err(_) => Outcome::Failed(started.elapsed()),
            },
        ));
        failure = result.err().map(|error| (step, error));
    }
    anstream::println!("\n{}", table(&rows));
    if let Some((step, error)) = failure {
        if counts != Counts::default() {
            anstream::println!("tests until then: {} good, {} bad", counts.passed, counts.failed);
        }
        anstream::println!(
            "{BAD}failed at step {step}{BAD:#}: {}\nagain with: cargo xtask test --only {step}",
            with_causes(&error)
        );
        return false;
    }
    anstream::println!("{GOOD}{}{GOOD:#}", closing(&steps, counts));
    true
}

/// Performs one step; false when there was nothing to do.
fn perform(step: Step, root: &Path, counts: &mut Counts) -> Result<bool, RunError> {
    let commands = match step.work(root) {
        Work::Commands(commands) => commands,
        Work::Tidy => {
            heading(step, "cargo xtask tidy");
            return if tidy::run(root) { Ok(true) } else { Err(RunError::Tidy) };
        }
        Work::Rest => {
            heading(step, "schemathesis against acpd serve");
            return rest::run(root).map(|()| true).map_err(|error| RunError::Rest(error.into()));
        }
    };
    let before = *counts;
    for line in &commands {
        heading(step, line);
        child::run(line, counts, &mut std::io::stdout())?;
    }
    if step == Step::Test && *counts == before {
        return Err(RunError::NoTests);
    }
    Ok(!commands.is_empty())
}

fn heading(step: Step, what: impl std::fmt::Display) {
    anstream::println!("\n{HEAD}[{step}]{HEAD:#} {what}");
}

fn table(rows: &[(Step, Outcome)]) -> String {
    let mut text = String::new();
    for (step, outcome) in rows {
        let (word, style, elapsed) = match outcome {
            Outcome::Passed(elapsed) => ("ok", GOOD, Some(elapsed)),
            Outcome::Failed(elapsed) => ("FAILED", BAD, Some(elapsed)),
            Outcome::Nothing => ("nothing there", Style::new(), None),
            Outcome::NotRun => ("not run", Style::new(), None),
        };
        let elapsed = elapsed.map(|time| format!("{:8.1} s", time.as_secs_f64())).unwrap_or_default();
        text += &format!("  {:<8} {style}{word:<7}{style:#}{elapsed}\n", step.to_string());
    }
    text
}

/// The last line of a run in which everything passed.
fn closing(steps: &[Step], counts: Counts) -> String {
    if steps.iter().any(|step| matches!(step, Step::Test | Step::Interop)) {
        format!("{} passed, {} failed", counts.passed, counts.failed)
    } else {
        "passed; no step that runs tests was selected".to_owned()
    }
}

/// Where cargo builds, and where the steps put what is not kept by git either.
fn target_directory(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "this is a shell: it only shows how long steps take")]
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_counts_tests() {
        let counts = Counts { passed: 12, failed: 0 };
        assert_eq!(closing(&[Step::Fmt, Step::Test], counts), "12 passed, 0 failed");
    }

    #[test]
    fn a_selection_without_tests_claims_no_count() {
        assert!(!closing(&[Step::Fmt], Counts::default()).contains("0 failed"));
    }

    #[test]
    fn the_table_has_a_row_for_each_step_also_for_those_not_run() {
        let rows = [
            (Step::Fmt, Outcome::Passed(Duration::from_millis(1500))),
            (Step::Clippy, Outcome::Failed(Duration::from_secs(2))),
            (Step::Test, Outcome::NotRun),
            (Step::Interop, Outcome::Nothing),
        ];
        let text = anstream::adapter::strip_str(&table(&rows)).to_string();
        assert_eq!(
            text,
            concat!(
                "  fmt      ok          1.5 s\n",
                "  clippy   FAILED      2.0 s\n",
                "  test     not run\n",
                "  interop  nothing there\n",
            )
        );
    }
}
