//! What many stored sessions cost: the start of a daemon, and a list of them with a daemon and without.
//!
//! One session is made, exported, and imported again under other ids. Times are of whole programs, from their start to their end,
//! or to the line of the daemon that says where it listens. Not here: sessions that are live, and lists of a fleet.

use super::programs::Programs;
use super::progress;
use super::report::Figure;
use super::samples::{median, millis, now};
use acpd_testkit::Scratch;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::{Command, Stdio};

/// How many are stored.
const SESSIONS: usize = 10_000;
/// Starts, and lists of each kind, that count.
const TIMES: usize = 11;
/// Milliseconds in which a daemon listens, and in which they are listed without one.
const LISTENS: f64 = 50.0;
const LIST: f64 = 50.0;

pub(super) fn measure(programs: &Programs) -> Result<(Vec<Figure>, String)> {
    progress(format_args!("stored: {SESSIONS} sessions are made"));
    let scratch = programs.scratch();
    fill(programs, &scratch)?;
    progress(format_args!("stored: {TIMES} starts and lists of each kind"));
    let [mut starts, mut without, mut with] = [const { Vec::new() }; 3];
    // The first of each is to warm up.
    for turn in 0..=TIMES {
        let list = listed(programs, &scratch)?;
        let begun = now();
        let mut daemon = programs.serve(&scratch);
        let start = millis(begun.elapsed());
        let list_of_daemon = listed(programs, &scratch)?;
        daemon.stop();
        for (all, time) in [(&mut without, list), (&mut starts, start), (&mut with, list_of_daemon)] {
            all.extend(Some(time).filter(|_| turn > 0));
        }
    }
    let of = |name: &str, times: &mut [f64]| {
        Figure::new(format!("{name} {SESSIONS} sessions"), "ms", [0.0, median(times)])
    };
    let figures = vec![
        of("a daemon listens that has", &mut starts).below(LISTENS),
        of("without a daemon, a list of", &mut without).below(LIST),
        of("with a daemon, a list of", &mut with),
    ];
    Ok((figures, format!("stored: medians of {TIMES}; lists are `acpd sessions list` from start to end")))
}

/// Puts the sessions into the state directory.
fn fill(programs: &Programs, scratch: &Scratch) -> Result<()> {
    let mut run = programs.embedded("run", scratch);
    output(run.arg("hi"))?;
    let of_one: Value = serde_json::from_str(&output(sessions(programs, scratch, "list").arg("--json"))?)?;
    let id = of_one["sessions"][0]["sessionId"].as_str().context("a session has an id")?;
    let exported = output(sessions(programs, scratch, "export").arg(id))?;
    let file = scratch.path("sessions.jsonl");
    std::fs::write(&file, copies(&exported, id, SESSIONS - 1))?;
    output(sessions(programs, scratch, "import").arg(&file))?;
    Ok(())
}

/// An export of so many sessions like one of id `id`.
fn copies(exported: &str, id: &str, count: usize) -> String {
    // An id is a UUID: its end is as good as any other.
    let (front, end) = id.split_at(id.len() - 12);
    let copy = |number| exported.replace(id, &format!("{front}{number:012x}"));
    (0..).map(copy).filter(|copy| !copy.contains(end)).take(count).collect()
}

/// The milliseconds of a list, which must have them all.
fn listed(programs: &Programs, scratch: &Scratch) -> Result<f64> {
    let begun = now();
    let table = output(&mut sessions(programs, scratch, "list"))?;
    let time = millis(begun.elapsed());
    // The first line has the names of the columns.
    let count = table.lines().count().saturating_sub(1);
    ensure!(count == SESSIONS, "{count} of {SESSIONS} sessions are listed");
    Ok(time)
}

fn sessions(programs: &Programs, scratch: &Scratch, what: &str) -> Command {
    let mut command = scratch.command(&programs.acpd);
    command.args(["sessions", what, "--state-dir"]).arg(scratch.state());
    command.arg("--config").arg(scratch.config_file());
    command
}

/// What a program prints, which must end well.
fn output(command: &mut Command) -> Result<String> {
    let done = command.stdin(Stdio::null()).output()?;
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(String::from_utf8(done.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    // each is another session, and is that wherever its id stands
    #[test]
    fn copies_differ_in_their_id_alone() {
        let id = "01a21ac2-ffed-740b-98e2-000000000001";
        let exported = format!("{{\"sessionId\":\"{id}\"}}\n{{\"params\":\"{id}\"}}\n");
        let all = copies(&exported, id, 3);
        let ids: Vec<&str> = all.lines().filter_map(|line| line.split('"').nth(3)).collect();
        assert_eq!(ids.len(), 6);
        assert!(ids.chunks(2).all(|pair| pair[0] == pair[1] && pair[0].len() == id.len()), "{all}");
        let different: HashSet<&str> = ids.into_iter().chain([id]).collect();
        assert_eq!(different.len(), 4, "{all}");
    }
}
