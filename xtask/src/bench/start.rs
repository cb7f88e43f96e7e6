//! From nothing to an answer, and to a daemon that listens.
//!
//! What a person waits for: a whole run of one prompt, and the start of a program until it has answered
//! `initialize`. Both sides by turns, each in a state directory that it has used before: the first turn, which makes it,
//! does not count.

use super::peer::Peer;
use super::program::{Programs, Side};
use super::report::{Comparison, Measured, Measurement};
use super::statistics::{median, millis};
use super::{now, progress};
use acpd_testkit::Scratch;
use serde_json::json;

/// Starts of each kind and side that count.
const STARTS: usize = 20;
const PROMPT: &str = "hi";
/// Milliseconds in which a daemon listens.
const LISTENS: f64 = 50.0;

pub(super) fn measure(programs: &Programs) -> Measured {
    progress(format_args!("starts: {STARTS} of each kind and side"));
    let [mut answers, mut runs] = [[vec![], vec![]], [vec![], vec![]]];
    let scratches = [programs.scratch(), programs.scratch()];
    for turn in 0..=STARTS {
        for (place, side) in Side::BOTH.into_iter().enumerate() {
            let answer = first_answer(programs, side, &scratches[place]);
            let run = whole_run(programs, side, &scratches[place]);
            if turn > 0 {
                answers[place].push(answer);
                runs[place].push(run);
            }
        }
    }
    let of = |name: &str, [mut direct, mut acpd]: [Vec<f64>; 2]| {
        Measurement::new(name, "ms", [median(&mut direct), median(&mut acpd)], Comparison::Times)
    };
    let measurements = vec![of("start to first answer", answers), of("whole run of a prompt", runs)];
    (measurements, format!("starts: medians of {STARTS}"))
}

/// From the start of a speaker to its answer to `initialize`.
fn first_answer(programs: &Programs, side: Side, scratch: &Scratch) -> f64 {
    let begun = now();
    let mut peer = Peer::start(programs.speaker(side, scratch));
    peer.initialize();
    let time = millis(begun.elapsed());
    peer.finish();
    time
}

/// One prompt, from the start of the program to its exit: `acpd run`, or what it would do with the agent itself.
fn whole_run(programs: &Programs, side: Side, scratch: &Scratch) -> f64 {
    let begun = now();
    if side == Side::Acpd {
        return millis(Peer::start(programs.run(PROMPT, scratch)).finish() - begun);
    }
    let mut peer = Peer::start(programs.speaker(side, scratch));
    peer.initialize();
    let answer = peer.request("session/new", &json!({"cwd": "/", "mcpServers": []}));
    let prompt = json!([{"type": "text", "text": PROMPT}]);
    peer.request("session/prompt", &json!({"sessionId": answer["result"]["sessionId"], "prompt": prompt}));
    millis(peer.finish() - begun)
}

/// From the start of a daemon to its first line.
pub(super) fn measure_daemon(programs: &Programs) -> Measured {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let scratch = programs.scratch();
        let begun = now();
        let mut daemon = programs.serve(&scratch);
        times.push(millis(begun.elapsed()));
        daemon.stop();
    }
    let limit = Comparison::Extra { below: LISTENS };
    let listens = Measurement::new("a daemon listens", "ms", [0.0, median(&mut times)], limit);
    (vec![listens], format!("a daemon listens: median of {STARTS} starts"))
}
