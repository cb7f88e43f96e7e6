//! What a round trip takes longer when its agent outlives the daemon: with `[continuity] keep`, next to the same without it.
//!
//! Two daemons, one of either kind, each with one session, take turns in blocks. Not here: throughput, which is in `kept.rs`.

use super::client::{Client, Wire, prompt};
use super::kept::scratches;
use super::programs::Programs;
use super::progress;
use super::report::Figure;
use super::samples::{in_both_places, median, percentile};
use serde_json::json;

/// Requests of each kind and side that count, after those that do not, in turns of a block.
const REQUESTS: usize = 4_000;
const WARM_UP: usize = 500;
const BLOCK: usize = 250;
/// What a trivial request may take, times what it takes without (docs/adr/0027).
const LONGER: f64 = 1.3;
/// Microseconds that a prompt may take longer.
const PROMPT: f64 = 15.0;

/// A kind of what is asked: its name, its method, and what it may take on one processor.
type Kind = (&'static str, &'static str, fn(Figure) -> Figure);

const KINDS: [Kind; 2] = [
    ("a request", "_example/ping", |figure| figure.at_most(LONGER)),
    ("a prompt", "session/prompt", |figure| figure.below(PROMPT)),
];

pub(super) fn measure(programs: &Programs) -> (Vec<Figure>, String) {
    let figures = in_both_places(|place, limited| {
        progress(format_args!("kept: round trips{place}"));
        let scratches = scratches(programs);
        let mut daemons = scratches.each_ref().map(|scratch| programs.serve(scratch));
        let mut clients = daemons.each_ref().map(Client::over_websocket);
        let sessions = clients.each_mut().map(Client::settled_session);
        let pings = sessions.each_ref().map(|session| json!({"sessionId": session}).to_string());
        let prompts = sessions.each_ref().map(|session| prompt(session, "hi").to_string());
        let mut figures = Vec::new();
        for ((what, method, limit), params) in KINDS.into_iter().zip([pings, prompts]) {
            let mut times = [Vec::new(), Vec::new()];
            for block in 0..(WARM_UP + REQUESTS) / BLOCK {
                for side in [0, 1] {
                    let took = (0..BLOCK).map(|_| clients[side].timed(method, &params[side])[1]);
                    let took: Vec<f64> = took.collect();
                    times[side].extend(took.into_iter().filter(|_| block >= WARM_UP / BLOCK));
                    assert!(clients[side].wire.answer().get("result").is_some(), "{method}");
                }
            }
            let name = format!("kept: round trip of {what}{place}");
            let figure = Figure::new(&*name, "us", times.each_mut().map(|times| median(times)));
            figures.push(if limited { limit(figure) } else { figure });
            let slow = times.each_mut().map(|times| percentile(times, 99));
            figures.push(Figure::new(format!("{name}, p99"), "us", slow));
        }
        drop(clients);
        daemons.iter_mut().for_each(|daemon| drop(daemon.stop()));
        figures
    });
    (figures, format!("kept: round trips over a WebSocket, medians of {REQUESTS} each, in turns of {BLOCK}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // ADR 27, and what a prompt may take longer: a share of a request, microseconds of a prompt
    #[test]
    fn each_kind_has_a_limit_of_its_own() {
        let [request, prompt] = KINDS.map(|(.., limit)| {
            [[100.0, 129.0], [100.0, 131.0], [900.0, 914.0], [900.0, 916.0]]
                .map(|sides| json!(limit(Figure::new("it", "us", sides)))["ok"] == true)
        });
        assert_eq!(request, [true, false, true, true]);
        assert_eq!(prompt, [false, false, true, false]);
    }
}
