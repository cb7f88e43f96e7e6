//! Steps that run side by side: two lanes, each one step after the other.
//!
//! They wait more than they compute, so that two take little longer than one. Steps of one lane may share what they write
//! (`node_modules` of the TypeScript package; cargo's lock), steps of two lanes share nothing but what was built before. Each step
//! is a process of this program, so that what it prints stays together. Not here: what a step does.

use super::{Outcome, Step};
use crate::run::{self, Counts};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// By what they write: with cargo, and with npm.
const LANES: [&[Step]; 2] =
    [&[Step::Doc, Step::Interop, Step::Packages, Step::Rest], &[Step::Sdk, Step::Book, Step::Web]];

/// The steps that run alone, and those of either lane. What would be alone in its lanes needs none.
pub(super) fn split(steps: &[Step]) -> (Vec<Step>, [Vec<Step>; 2]) {
    let lanes =
        LANES.map(|lane| lane.iter().copied().filter(|step| steps.contains(step)).collect::<Vec<_>>());
    if lanes.iter().any(Vec::is_empty) {
        return (steps.to_vec(), Default::default());
    }
    let is_alone = |step: &Step| !lanes.iter().any(|lane| lane.contains(step));
    (steps.iter().copied().filter(is_alone).collect(), lanes)
}

/// Runs both lanes, each up to the first step of either that fails.
pub(super) fn run(lanes: &[Vec<Step>; 2], root: &Path, outcome: &mut Outcome) {
    let has_failed = AtomicBool::new(outcome.failure.is_some());
    let outcomes = std::thread::scope(|scope| {
        let lane = |steps: &[Step]| {
            let mut outcome = Outcome::default();
            for &step in steps {
                if has_failed.load(Ordering::Relaxed) {
                    outcome.skip(step);
                } else {
                    outcome.step(step, |counts| perform(step, root, counts));
                    has_failed.fetch_or(outcome.failure.is_some(), Ordering::Relaxed);
                }
            }
            outcome
        };
        let both = lanes.each_ref().map(|steps| scope.spawn(move || lane(steps)));
        both.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    for lane in outcomes {
        outcome.rows.extend(lane.rows);
        outcome.failure = outcome.failure.take().or(lane.failure);
        outcome.counts += lane.counts;
    }
    // In the order in which steps are declared, whatever ran when.
    outcome.rows.sort_by_key(|row| row.step);
}

fn perform(step: Step, root: &Path, counts: &mut Counts) -> Result<()> {
    let mut command = run::command(this_program()?);
    command.args(["test", "--in-lane", "--only", &step.name()]).current_dir(root);
    // Its commands have limits.
    run::run_apart(command, None, "", counts)
}

/// What runs here, also when the build has put a newer one in its place.
fn this_program() -> Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok(PathBuf::from("/proc/self/exe")),
        false => Ok(std::env::current_exe()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_step_runs_once_and_in_a_lane_only_beside_others() {
        let all = Step::value_variants();
        let (alone, [first, second]) = split(all);
        assert_eq!(alone, [Step::Fmt, Step::Tidy, Step::Build, Step::Test]);
        assert_eq!(first, [Step::Doc, Step::Interop, Step::Packages, Step::Rest]);
        assert_eq!(second, [Step::Sdk, Step::Book, Step::Web]);
        for some in [&[Step::Build, Step::Rest, Step::Doc][..], &[Step::Fmt], &[]] {
            assert_eq!(split(some), (some.to_vec(), Default::default()));
        }
    }
}
