//! What many sessions cost that each say little, and often: a word every 20 ms, as models do.
//!
//! Some have processes of their own, no more of them than two processors can run; then all share one. The processor time of the
//! daemon, of the keepers and of the agents is counted over some seconds in the middle, without agents that outlive the daemon and
//! with. Not here: how much one session can say, which is in
//! `kept.rs`.

use super::kept::{Session, post, scratches};
use super::programs::Programs;
use super::progress;
use super::report::Figure;
use super::samples::now;
use super::takeover::{OWN, SHARED, with_shared};
use acpd_testkit::{Daemon, Http, Scratch, families, processor_time};
use serde_json::json;
use std::time::Duration;

/// Milliseconds between two words of a session.
const PAUSE: u64 = 20;
/// How long is counted, after as long a time in which all speak.
const COUNTED: Duration = Duration::from_secs(10);
/// How long each waits first, so that all are prompted before one speaks.
const WAITS: Duration = Duration::from_secs(20);
/// How long each would speak, which is longer than it is waited and counted.
const SPEAKS: Duration = Duration::from_secs(60);
/// What the daemon may take of a processor besides, and the keepers in all.
const EXTRA: f64 = 0.15;
/// So many agents, at most, each with a process.
const PROCESSES: u64 = 300;

/// The processor time of all, and how many events were committed.
#[derive(Clone, Copy)]
struct Spent {
    daemon: f64,
    keepers: f64,
    agents: f64,
    events: f64,
}

pub(super) fn measure(programs: &Programs, sessions: u64) -> (Vec<Figure>, String) {
    let mut figures = Vec::new();
    for (agent, how, sessions) in
        [(OWN, "processes of their own", sessions.min(PROCESSES)), (SHARED, "one process", sessions)]
    {
        let [plain, kept] = scratches(programs).map(|scratch| {
            let scratch = with_shared(scratch, programs);
            speak(programs, &scratch, agent, sessions)
        });
        let of = |what: &str, unit, part: fn(&Spent) -> f64| {
            Figure::new(format!("words of {sessions}, {how}: {what}"), unit, [part(&plain), part(&kept)])
        };
        figures.push(of("events", "events/s", |spent| spent.events));
        figures.push(of("daemon", "processors", |spent| spent.daemon).below(EXTRA));
        figures.push(of("keepers", "processors", |spent| spent.keepers).below(EXTRA));
        figures.push(of("agents", "processors", |spent| spent.agents));
    }
    let seconds = COUNTED.as_secs();
    (figures, format!("words: of each session one every {PAUSE} ms, nobody watching, over {seconds} s"))
}

/// Has so many sessions speak; what that takes in a second.
fn speak(programs: &Programs, scratch: &Scratch, agent: &str, sessions: u64) -> Spent {
    progress(format_args!("words: {sessions} sessions begin"));
    let mut daemon = programs.serve(scratch);
    let begin = |_| {
        let mut session = Session::begin(&daemon, agent, "hi");
        session.until(|info| info["state"] == "idle");
        session.path
    };
    let all: Vec<String> = (0..sessions).map(begin).collect();
    let words = usize::try_from(SPEAKS.as_secs() * 1000 / PAUSE).unwrap_or(1);
    let first = format!("sleep {}\n", WAITS.as_millis());
    let prompt = json!({"prompt": first + &format!("word\nsleep {PAUSE}\n").repeat(words)});
    let mut http = Http::on(daemon.connect());
    for path in all {
        assert_eq!(post(&mut http, &format!("{path}/prompt"), &prompt).status, 202);
    }
    progress(format_args!("words: {sessions} sessions speak"));
    pause(WAITS + COUNTED);
    let (begun, before) = (now(), Spent::until_now(&daemon));
    pause(COUNTED);
    let (seconds, after) = (begun.elapsed().as_secs_f64(), Spent::until_now(&daemon));
    daemon.stop();
    let of = |part: fn(&Spent) -> f64| (part(&after) - part(&before)) / seconds;
    Spent {
        daemon: of(|spent| spent.daemon),
        keepers: of(|spent| spent.keepers),
        agents: of(|spent| spent.agents),
        events: of(|spent| spent.events),
    }
}

impl Spent {
    fn until_now(daemon: &Daemon) -> Self {
        let families = families();
        let children = |pids: &[u32]| -> Vec<u32> {
            pids.iter().filter_map(|pid| families.get(pid)).flatten().copied().collect()
        };
        let of = |pids: &[u32]| pids.iter().map(|pid| processor_time(*pid).as_secs_f64()).sum();
        let keepers = children(&[daemon.pid()]);
        let agents = children(&keepers);
        let metrics = Http::on(daemon.connect()).request("GET", "/metrics", &[], "").body;
        Self {
            daemon: of(&[daemon.pid()]),
            keepers: of(&keepers),
            agents: of(&agents),
            events: appended(&metrics),
        }
    }
}

/// How many events the metrics tell of.
fn appended(metrics: &[u8]) -> f64 {
    let metrics = String::from_utf8_lossy(metrics);
    let value = metrics.lines().find_map(|line| line.strip_prefix("acpd_events_appended_total "));
    value.and_then(|value| value.parse().ok()).expect("the metrics count events")
}

fn pause(span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "what is counted is a span of time")]
    std::thread::sleep(span);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_from_metrics() {
        let text = "# TYPE acpd_events_appended_total counter\nacpd_events_appended_total 42\nacpd_x 1\n";
        assert!((appended(text.as_bytes()) - 42.0).abs() < 1e-9);
    }
}
