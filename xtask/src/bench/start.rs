//! From nothing to an answer.
//!
//! What a person waits for: a whole run of one prompt, and the start of a program until it has answered
//! `initialize`. Both sides by turns, each in a state directory that it has used before: the first turn, which makes it,
//! does not count.

use super::figures::{median, millis};
use super::peer::{Peer, PeerError};
use super::program::{Programs, Side};
use super::report::Comparison;
use super::{Measurement, now, progress};
use serde_json::json;
use tempfile::TempDir;

/// Starts of each kind and side that count.
const STARTS: usize = 20;
const PROMPT: &str = "hi";

/// Times of both sides, in milliseconds.
type Times = [Vec<f64>; 2];

pub(super) fn measure(programs: &Programs) -> Result<(Vec<Measurement>, String), PeerError> {
    progress(format_args!("starts: {STARTS} of each kind and side"));
    let (mut answers, mut runs) = (Times::default(), Times::default());
    let states = [programs.state_dir()?, programs.state_dir()?];
    for turn in 0..=STARTS {
        for (place, side) in Side::BOTH.into_iter().enumerate() {
            let (answer, run) =
                (first_answer(programs, side, &states[place])?, whole_run(programs, side, &states[place])?);
            if turn > 0 {
                answers[place].push(answer);
                runs[place].push(run);
            }
        }
    }
    let measurement = |name: &str, mut times: Times| {
        let [direct, acpd] = times.each_mut().map(|samples| median(samples));
        Measurement { name: name.to_owned(), unit: "ms", direct, acpd, comparison: Comparison::Times }
    };
    let measurements =
        vec![measurement("start to first answer", answers), measurement("whole run of a prompt", runs)];
    Ok((measurements, format!("starts: medians of {STARTS}")))
}

/// From the start of a speaker to its answer to `initialize`.
fn first_answer(programs: &Programs, side: Side, state: &TempDir) -> Result<f64, PeerError> {
    let speaker = programs.speaker(side, state);
    let begun = now();
    let mut peer = Peer::start(speaker)?;
    peer.initialize()?;
    let time = millis(begun.elapsed());
    peer.finish()?;
    Ok(time)
}

/// One prompt, from the start of the program to its exit: `acpd run`, or what it would do with the agent itself.
fn whole_run(programs: &Programs, side: Side, state: &TempDir) -> Result<f64, PeerError> {
    let program = match side {
        Side::Direct => programs.speaker(side, state),
        Side::Acpd => programs.run(PROMPT, state),
    };
    let begun = now();
    let mut peer = Peer::start(program)?;
    if side == Side::Direct {
        peer.initialize()?;
        let answer = peer.request("session/new", &json!({"cwd": "/", "mcpServers": []}))?;
        let session = &answer["result"]["sessionId"];
        let prompt = json!([{"type": "text", "text": PROMPT}]);
        peer.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}))?;
    }
    Ok(millis(peer.finish()? - begun))
}
