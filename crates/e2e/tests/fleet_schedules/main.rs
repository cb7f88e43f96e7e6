//! A fleet under disturbances: a seed says which nodes, links and servers of NATS are lost and when, requests go on all the while, and
//! a judge reads all logs and the archive afterwards.
//!
//! What is random comes from a seed; the timing of processes is not in it, so a rare failure may want several tries.
//! `ACPD_SCHEDULES` sets the number of schedules, `ACPD_SEED` the first seed, and `ACPD_SCHEDULES_AT=defaults` runs them with the heartbeat
//! and the lease that users have, which takes minutes; with `ACPD_SCHEDULES_TOLD=1` what happens is told of each:
//!
//! ```sh
//! ACPD_SCHEDULES=30 ACPD_SEED=7 cargo test -p acpd-e2e --test fleet_schedules -- --nocapture
//! ```

mod asking;
mod board;
#[path = "../chaos/dice.rs"]
mod dice;
mod gathering;
mod judge;
mod playing;
mod report;
mod schedule;
mod settling;
mod world;

use crate::dice::{number_from, seeds};
use crate::report::Report;
use crate::schedule::{Pace, Schedule};
use std::sync::Mutex;

/// Schedules of a run that says nothing else.
const SCHEDULES: usize = 5;
/// Schedules that are played at a time: most of what they do is waiting.
const AT_ONCE: usize = 3;

// design fleet, tests: under any schedule of losses, at most one epoch of a session appends at a time, no event of an owner's log is missing
// from the archive after healing, no session is run twice, a lost node is shown, and each request is answered within 5 s
#[test]
fn nothing_is_lost_and_nothing_runs_twice() {
    let pace = match std::env::var("ACPD_SCHEDULES_AT").as_deref() {
        Ok("defaults") => Pace::of_users(),
        _ => Pace::fast(),
    };
    let (first, count) = (seeds(1)[0], number_from("ACPD_SCHEDULES", SCHEDULES));
    let is_told = std::env::var_os("ACPD_SCHEDULES_TOLD").is_some();
    let (left, wrong) = (Mutex::new((first..).take(count)), Mutex::new(Vec::new()));
    let play = || {
        while let Some(seed) = next(&left) {
            eprintln!("ACPD_SEED={seed} begins");
            let schedule = Schedule::of(seed, pace);
            let report = report::of(&schedule);
            eprintln!("ACPD_SEED={seed}: {report}");
            if is_told {
                eprint!("{}", report.journal.concat());
            }
            if !report.violations.is_empty() {
                wrong.lock().expect("nobody panics there").push(told(&schedule, &report));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(play);
        }
    });
    let wrong = wrong.into_inner().expect("nobody panics there");
    assert!(wrong.is_empty(), "{} of {count} schedules:\n{}", wrong.len(), wrong.join("\n"));
}

fn next(left: &Mutex<impl Iterator<Item = u64>>) -> Option<u64> {
    left.lock().expect("nobody panics there").next()
}

fn told(schedule: &Schedule, report: &Report) -> String {
    format!(
        "ACPD_SEED={}\n{schedule}as it went:\n{}violations:\n{}\n",
        schedule.seed,
        report.journal.concat(),
        report.violations.join("\n")
    )
}
