//! From a request to its answer: through acpd, next to the agent itself.
//!
//! Both sides run all the time and are asked in turns, a block of requests each, so that a slow moment of the machine
//! meets both. Asked twice: with everything on one processor, which shows what acpd itself adds and what the limits
//! are for; and wherever the system puts it, which on a virtual machine mostly shows what it costs there to wake a
//! processor that sleeps (seen: 35 us each time, and nothing when the machine is busy).
//! Not here: requests that do work; what is measured is the way there and back.

use super::figures::{median, micros, percentile, shown};
use super::peer::{Peer, PeerError};
use super::processor::OnOne;
use super::program::{Programs, Side};
use super::report::Comparison;
use super::{Measurement, progress};
use tempfile::TempDir;

/// Requests of each kind and side that count.
const REQUESTS: usize = 5_000;
/// Requests before the next side's turn.
const BLOCK: usize = 250;
/// Requests of each kind and side that do not count.
const WARM_UP: usize = 500;
/// Microseconds that acpd may add to a trivial request.
const EXTRA: f64 = 60.0;

/// A kind of request.
struct Kind {
    what: &'static str,
    method: &'static str,
    /// Beside the session's id, if it has one.
    params: &'static str,
    in_session: bool,
    /// Nothing is done for it, so the limit is for it.
    trivial: bool,
}

const KINDS: [Kind; 3] = [
    Kind { what: "of the connection", method: "_example/ping", params: "", in_session: false, trivial: true },
    Kind { what: "in a session", method: "_example/ping", params: "", in_session: true, trivial: true },
    // It causes an update, and its answer waits until that was recorded and shown.
    Kind {
        what: "with an update",
        method: "session/set_mode",
        params: ",\"modeId\":\"plan\"",
        in_session: true,
        trivial: false,
    },
];

/// One side, ready to be asked.
struct Asked {
    peer: Peer,
    /// The params of each kind.
    params: [String; KINDS.len()],
    /// Microseconds.
    times: [Vec<f64>; KINDS.len()],
}

impl Asked {
    fn start(programs: &Programs, side: Side, state: &TempDir) -> Result<Self, PeerError> {
        let mut peer = Peer::start(programs.speaker(side, state))?;
        peer.initialize()?;
        let session = peer.new_session()?;
        let params = KINDS.map(|kind| match kind.in_session {
            true => format!("{{\"sessionId\":{session}{}}}", kind.params),
            false => format!("{{{}}}", kind.params),
        });
        Ok(Self { peer, params, times: Default::default() })
    }

    fn ask(&mut self, kind: usize, count: usize) -> Result<(), PeerError> {
        for _ in 0..count {
            let time = self.peer.timed_request(KINDS[kind].method, &self.params[kind])?;
            self.times[kind].push(micros(time));
        }
        // One look at what the last answer says is enough.
        let params = serde_json::from_str(&self.params[kind]).unwrap_or_default();
        self.peer.request(KINDS[kind].method, &params).map(drop)
    }
}

pub(super) fn measure(programs: &Programs) -> Result<(Vec<Measurement>, String), PeerError> {
    let mut measurements = Vec::new();
    match OnOne::enter() {
        Some(on_one) => {
            measurements.extend(measure_here(programs, ", one processor", true)?);
            drop(on_one);
            measurements.extend(measure_here(programs, ", any processor", false)?);
        }
        None => measurements.extend(measure_here(programs, "", true)?),
    }
    let remark = format!(
        "round trips: medians of {} requests each, in turns of {BLOCK}, after {WARM_UP} that do not count",
        shown(REQUESTS as f64)
    );
    Ok((measurements, remark))
}

fn measure_here(
    programs: &Programs,
    place: &'static str,
    limited: bool,
) -> Result<Vec<Measurement>, PeerError> {
    let states = [programs.state_dir()?, programs.state_dir()?];
    let mut direct = Asked::start(programs, Side::Direct, &states[0])?;
    let mut acpd = Asked::start(programs, Side::Acpd, &states[1])?;
    for (number, kind) in KINDS.iter().enumerate() {
        progress(format_args!("round trip {}{place}: {REQUESTS} requests to each side", kind.what));
        for side in [&mut direct, &mut acpd] {
            side.ask(number, WARM_UP)?;
            side.times[number].clear();
        }
        for _ in 0..REQUESTS / BLOCK {
            direct.ask(number, BLOCK)?;
            acpd.ask(number, BLOCK)?;
        }
    }
    direct.peer.finish()?;
    acpd.peer.finish()?;
    let mut measurements = Vec::new();
    for (kind, (direct, acpd)) in KINDS.iter().zip(direct.times.iter_mut().zip(&mut acpd.times)) {
        let of = |name: String, direct, acpd, comparison| Measurement {
            name,
            unit: "us",
            direct,
            acpd,
            comparison,
        };
        let limit = Comparison::Extra { below: EXTRA };
        let comparison = if kind.trivial && limited { limit } else { Comparison::ExtraOnly };
        let name = format!("round trip {}{place}", kind.what);
        measurements.push(of(name.clone(), median(direct), median(acpd), comparison));
        let slow = [percentile(direct, 99), percentile(acpd, 99)];
        measurements.push(of(format!("{name}, p99"), slow[0], slow[1], Comparison::ExtraOnly));
    }
    Ok(measurements)
}
