//! One schedule from its begin to its verdict.

use crate::asking::Asker;
use crate::board::Board;
use crate::dice::Dice;
use crate::gathering::gather;
use crate::judge::runs::{self, Stop};
use crate::judge::{Evidence, committed, completeness, epochs};
use crate::playing::play;
use crate::schedule::Schedule;
use crate::settling::settle;
use crate::world::{NAMES, World};
use acpd_e2e::Stopwatch;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Those who ask at the same time; most of them wait for a node that is stopped.
const ASKERS: u64 = 8;

/// What came of a schedule.
#[derive(Debug, Default)]
pub(crate) struct Report {
    disturbances: usize,
    looks: usize,
    answers: BTreeMap<(&'static str, String), usize>,
    exempt: usize,
    slowest: Duration,
    events: usize,
    shown: usize,
    /// Sessions that another node has taken up, as often as that was.
    moves: usize,
    /// Runs that overlap because a node was stopped.
    excused: usize,
    started: Duration,
    settled: Duration,
    took: Duration,
    pub(crate) violations: Vec<String>,
    pub(crate) journal: Vec<String>,
}

/// Plays a schedule, and judges it.
pub(crate) fn of(schedule: &Schedule) -> Report {
    let all = Stopwatch::start();
    let mut world = World::start(schedule.pace);
    let sessions = world.create_sessions();
    let started = all.passed();
    let board = Board::new();
    let doors: Vec<_> = world.nodes.iter().map(|node| node.address).collect();
    std::thread::scope(|scope| {
        for at in 1..=ASKERS {
            let dice = Dice::new(schedule.seed.wrapping_add(at << 32));
            let asker = Asker { board: &board, doors: doors.clone(), sessions: &sessions, dice };
            scope.spawn(move || asker.run());
        }
        // They end though it panics.
        let played =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play(&mut world, schedule, &board)));
        board.end();
        played.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let settling = Stopwatch::start();
    match settle(&world, schedule.pace) {
        Ok(lacked) => board.done(&format!("all is whole, and at rest; at the last: {lacked}")),
        Err(why) => board.wrong(format!("the fleet does not heal: {why}")),
    }
    let settled = settling.passed();
    let mut report = judged(&world, schedule, &sessions, &board);
    (report.started, report.settled) = (started, settled);
    report.disturbances = schedule.disturbances.len();
    if !report.violations.is_empty() {
        keep(&world, schedule.seed);
    }
    drop(world);
    report.took = all.passed();
    report
}

fn judged(world: &World, schedule: &Schedule, sessions: &[String], board: &Board) -> Report {
    let gathered = gather(world, sessions, schedule.pace);
    let mut told = board.told();
    let mut report = Report {
        looks: told.looks,
        answers: std::mem::take(&mut told.answers),
        exempt: told.exempt,
        slowest: told.slowest,
        shown: told.shown.values().map(std::collections::BTreeSet::len).sum(),
        violations: std::mem::take(&mut told.violations),
        journal: std::mem::take(&mut told.journal),
        ..Report::default()
    };
    let stops = told.down.iter().filter(|down| down.is_stopped).map(|down| Stop {
        node: down.node,
        from_ms: down.from_ms,
        to_ms: down.to_ms.unwrap_or(i64::MAX),
    });
    let stops: Vec<_> = stops.collect();
    match gathered {
        Err(why) => report.violations.push(format!("not all can be read: {why}")),
        Ok(all) => {
            for evidence in &all {
                let shown = told.shown.iter().filter(|((session, _), _)| *session == evidence.session);
                report.judge(evidence, shown.flat_map(|(_, texts)| texts), &stops);
            }
        }
    }
    report
}

impl Report {
    fn judge<'a>(&mut self, evidence: &Evidence, shown: impl Iterator<Item = &'a String>, stops: &[Stop]) {
        let mut wrong = epochs::judge(&evidence.pieces);
        match evidence.log() {
            Ok(log) => {
                wrong.extend(completeness::judge(&log.events, &evidence.archive));
                if log.shown.len() != log.events.len() {
                    wrong.push(format!("of {} events its node shows {}", log.events.len(), log.shown.len()));
                }
                self.events += log.events.len();
            }
            Err(why) => wrong.push(why),
        }
        let runs = runs::judge(&evidence.logs, stops);
        wrong.extend(runs.wrong);
        self.excused += runs.excused;
        let logs: Vec<_> = evidence.logs.iter().map(|log| &log.shown[..]).collect();
        wrong.extend(committed::judge(shown, &logs));
        self.moves += evidence.logs.len().saturating_sub(1);
        self.violations.extend(wrong.iter().map(|wrong| format!("session {}: {wrong}", evidence.session)));
    }
}

/// What the nodes have said is kept with the other files of tests.
fn keep(world: &World, seed: u64) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fleet_schedules/{seed}"));
    std::fs::create_dir_all(&directory).expect("it is writable");
    for (node, name) in world.nodes.iter().zip(NAMES) {
        std::fs::write(directory.join(name), node.said()).expect("it is writable");
    }
    eprintln!("what the nodes have said is in {}", directory.display());
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests: usize = self.answers.values().sum();
        write!(
            f,
            "{} disturbances, {requests} requests and {} at nodes that were down, the slowest {} ms; {} looks at a lost node; {} events, {} \
             of them shown, {} copies set aside, {} overlaps of a stopped node; begun after {:.1} s, at rest after {:.1} s, {:.1} s in all; {} violations\n ",
            self.disturbances,
            self.exempt,
            self.slowest.as_millis(),
            self.looks,
            self.events,
            self.shown,
            self.moves,
            self.excused,
            self.started.as_secs_f64(),
            self.settled.as_secs_f64(),
            self.took.as_secs_f64(),
            self.violations.len()
        )?;
        self.answers.iter().try_for_each(|((what, answer), count)| write!(f, " {what} {answer}: {count};"))
    }
}
