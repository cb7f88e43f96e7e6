//! What the archive of a fleet costs beside what an agent says: messages a second into the log of a node, next to the same of a
//! daemon that is in no fleet.
//!
//! Both daemons and the server of NATS are on this machine. The two take turns, and each begins when the archive has all that was
//! said before, so that nothing of it is paid for by the other. Not here: what is lost when something fails, which tests show.

use super::fleet::{Node, until};
use super::kept::{Session, stream};
use super::programs::Programs;
use super::progress;
use super::report::{Figure, shown};
use super::samples::median;
use acpd_testkit::{Http, NatsServer};

/// Bytes of the text of a message.
const TEXT: u64 = 100;
/// Messages of a turn, at most.
const TURN: u64 = 100_000;
/// What must be left of the throughput.
const SHARE: f64 = 0.8;
/// How often in a row the archive must have had everything: a node learns a moment later how far its sessions are.
const LOOKS: usize = 25;
/// Turns of each side that count, at least.
const TURNS: u64 = 3;

pub(super) fn measure(programs: &Programs, messages: u64) -> (Vec<Figure>, String) {
    let server = NatsServer::start();
    let [mut alone, mut node] = [None, Some(&server)].map(|server| Node::start(programs, server, "one"));
    let mut sides = [&alone.daemon, &node.daemon].map(|daemon| Session::begin(daemon, "example", "hi"));
    let mut speeds = [Vec::new(), Vec::new()];
    let mut http = node.http();
    let turns = messages.div_ceil(TURN).max(TURNS);
    for turn in 0..=turns {
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let speed = stream(&mut sides[side], TURN.min(messages), TEXT);
            progress(format_args!(
                "archive {turn}/{turns} {}: {} messages/s",
                ["without", "with"][side],
                shown(speed)
            ));
            // The first is to warm up.
            speeds[side].extend(Some(speed).filter(|_| turn > 0));
            settle(&mut http);
        }
    }
    let medians = speeds.each_mut().map(|samples| median(samples));
    drop(http);
    alone.daemon.stop();
    node.daemon.stop();
    let remark = format!(
        "archive: medians of {turns} turns of up to {TURN} messages, next to a daemon that is in no fleet"
    );
    (vec![Figure::new("throughput with a fleet's archive", "messages/s", medians).at_least(SHARE)], remark)
}

/// Waits until the archive has everything.
fn settle(http: &mut Http) {
    let mut looks = 0;
    until(|| {
        let has_all = lag(&http.request("GET", "/metrics", &[], "").body) == 0;
        looks = if has_all { looks + 1 } else { 0 };
        looks == LOOKS
    });
}

/// The events of a node that are not in the archive, by its metrics.
fn lag(metrics: &[u8]) -> u64 {
    let metrics = String::from_utf8_lossy(metrics);
    let lag = metrics.lines().find_map(|line| line.strip_prefix("acpd_fleet_lag_events "));
    lag.and_then(|lag| lag.parse().ok()).expect("a node says how far its archive is behind")
}

#[cfg(test)]
mod tests {
    use super::*;

    // what is not told is not taken for an archive that has everything
    #[test]
    fn how_far_it_is_behind_is_read_from_metrics() {
        let text = "# TYPE acpd_fleet_lag_events gauge\nacpd_fleet_lag_events 42\nacpd_x 0\n";
        assert_eq!(lag(text.as_bytes()), 42);
        assert!(std::panic::catch_unwind(|| lag(b"acpd_x 0\n")).is_err());
    }
}
