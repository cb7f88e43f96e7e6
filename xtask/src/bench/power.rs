//! Commits that survive the loss of power, next to those that survive the death of every process alone.
//!
//! Measured by the example program of the log's crate, which takes turns between the two; here it is started, read and judged.

use super::client::Peer;
use super::programs::{Programs, build};
use super::progress;
use super::report::Figure;
use anyhow::Result;
use serde::Deserialize;
use std::path::Path;

/// Lines of the program, one for each number of sessions.
const LINES: usize = 3;
const REMARK: &str = "power: `direct` is `durability = \"process\"`; sessions that each append an event of 300 bytes and wait for its \
                      commit, by turns of 2 s";

/// What the program says of a number of sessions: with `process` and with `power`; times are microseconds.
#[derive(Deserialize)]
struct Measured {
    sessions: usize,
    rate: [f64; 2],
    p50: [f64; 2],
    p99: [f64; 2],
    create: [f64; 2],
    resume: [f64; 2],
}

pub(super) fn measure(programs: &Programs, root: &Path) -> Result<(Vec<Figure>, String)> {
    let program = build(root, "-p acpd-eventlog --example power", "examples/power")?;
    progress("power: commits of 1, 8 and 64 sessions, by turns with process and power");
    let scratch = programs.scratch();
    let mut command = scratch.command(&program);
    command.arg(scratch.path("power"));
    let mut peer = Peer::start(command);
    let mut figures = Vec::new();
    for _ in 0..LINES {
        figures.extend(serde_json::from_slice::<Measured>(peer.next_line())?.figures());
    }
    peer.finish();
    Ok((figures, REMARK.to_owned()))
}

impl Measured {
    fn figures(self) -> Vec<Figure> {
        let of = |what: &str, unit, sides| {
            Figure::new(format!("power, {} sessions: {what}", self.sessions), unit, sides)
        };
        vec![
            of("commits", "commits/s", self.rate),
            of("commit", "us", self.p50),
            of("commit, p99", "us", self.p99),
            of("create", "us", self.create),
            of("resume", "us", self.resume),
        ]
    }
}
