//! From a request to its answer: through acpd, next to the agent itself.
//!
//! Both sides run all the time and are asked in turns, a block of requests each, so that a slow moment of the machine
//! meets both. Not here: requests that do work; what is measured is the way there and back.

use super::peer::Peer;
use super::program::{Programs, Side};
use super::progress;
use super::report::{Comparison, Measured, Measurement};
use super::statistics::{in_both_places, median, micros, percentile, shown};

/// Requests of each kind and side that count.
const REQUESTS: usize = 5_000;
/// Requests before the next side's turn.
const BLOCK: usize = 250;
/// Requests of each kind and side that do not count.
const WARM_UP: usize = 500;
/// Microseconds that acpd may add to a trivial request.
const EXTRA: f64 = 60.0;

/// What is asked, of what method and with which parameters in place of `SESSION`, and whether the limit is for it, as
/// nothing is done for it. The last causes an update, and its answer waits until that was recorded and shown.
const KINDS: [(&str, &str, &str, bool); 3] = [
    ("of the connection", "_example/ping", "{}", true),
    ("in a session", "_example/ping", "{\"sessionId\":SESSION}", true),
    ("with an update", "session/set_mode", "{\"sessionId\":SESSION,\"modeId\":\"plan\"}", false),
];

pub(super) fn measure(programs: &Programs) -> Measured {
    let remark = format!(
        "round trips: medians of {} requests each, in turns of {BLOCK}, after {WARM_UP} that do not count",
        shown(REQUESTS as f64)
    );
    (in_both_places(|place, limited| measure_here(programs, place, limited)), remark)
}

fn measure_here(programs: &Programs, place: &str, limited: bool) -> Vec<Measurement> {
    let scratches = [programs.scratch(), programs.scratch()];
    let mut sides = Side::BOTH.map(|side| {
        let mut peer = Peer::start(programs.speaker(side, &scratches[side as usize]));
        peer.initialize();
        let session = peer.new_session();
        (peer, session)
    });
    let mut measurements = Vec::new();
    for (what, method, params, trivial) in KINDS {
        progress(format_args!("round trip {what}{place}: {REQUESTS} requests to each side"));
        let mut times = [Vec::new(), Vec::new()];
        for counted in (0..WARM_UP / BLOCK).map(|_| false).chain((0..REQUESTS / BLOCK).map(|_| true)) {
            for ((peer, session), times) in sides.iter_mut().zip(&mut times) {
                let params = params.replace("SESSION", session);
                let block = (0..BLOCK).map(|_| micros(peer.timed_request(method, &params)));
                let block: Vec<f64> = block.collect();
                times.extend(if counted { block } else { Vec::new() });
                // One look at what the last answer says is enough.
                peer.request(method, &serde_json::from_str(&params).expect("it is JSON"));
            }
        }
        let comparison =
            if trivial && limited { Comparison::Extra { below: EXTRA } } else { Comparison::ExtraOnly };
        let name = format!("round trip {what}{place}");
        let medians = times.each_mut().map(|times| median(times));
        let slow = times.each_mut().map(|times| percentile(times, 99));
        measurements.push(Measurement::new(&*name, "us", medians, comparison));
        measurements.push(Measurement::new(format!("{name}, p99"), "us", slow, Comparison::ExtraOnly));
    }
    for (peer, _) in sides {
        peer.finish();
    }
    measurements
}
