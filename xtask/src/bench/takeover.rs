//! How soon a daemon has taken over the agents of one that was killed.
//!
//! Each session is in the middle of a turn, so nothing of its log is summed up: what it was is read from its first event on.
//! Counted from the start of the new daemon until it listens, and until the last session says in its log that it was taken
//! over. Not here: what the time without a daemon means for a client.

use super::kept::{KEEP, Session};
use super::programs::Programs;
use super::progress;
use super::report::Figure;
use super::samples::{millis, now};
use acpd_testkit::{Daemon, Http, Scratch};
use std::time::SystemTime;

/// Events of one of many sessions, about.
const EVENTS: u64 = 1_000;
/// Events of the long one.
const LONG: u64 = 1_000_000;
/// Milliseconds in which all of a thousand are taken over, on one process and with processes of their own, and in which a long
/// one is (docs/adr/0027).
const ALL: f64 = 1_000.0;
const ALL_OWN: f64 = 1_500.0;
const THE_LONG_ONE: f64 = 2_000.0;
/// Milliseconds by which others may be later beside a long one.
const BESIDE: f64 = 250.0;
/// Bytes of text in a message.
const TEXT: u64 = 100;
/// Milliseconds of a day.
const DAY: u64 = 24 * 60 * 60 * 1000;
/// One of many whose processes are their own; the others share one.
pub(super) const OWN: &str = "example";
pub(super) const SHARED: &str = "shared";

/// Milliseconds from the start of a daemon.
struct Times {
    listens: f64,
    /// The last one of many.
    others: f64,
    long: f64,
}

pub(super) fn measure(programs: &Programs, sessions: u64) -> (Vec<Figure>, String) {
    let of = |name: String, sides: [f64; 2]| Figure::new(name, "ms", sides);
    let mut figures = Vec::new();
    for (agent, how, limit) in [(SHARED, "one process", ALL), (OWN, "processes of their own", ALL_OWN)] {
        progress(format_args!("takeover: {sessions} sessions of {EVENTS} events, {how}"));
        let times = take_over(programs, agent, sessions, 0);
        let name = format!("{sessions} taken over, {how}");
        figures.push(of(name.clone(), [0.0, times.others]).below(limit));
        figures.push(of(format!("{name}: it listens"), [0.0, times.listens]));
    }
    let few = (sessions / 10).max(1);
    progress(format_args!("takeover: one session of {LONG} events, and {few} without and with it"));
    let [without, with] = [0, LONG].map(|long| take_over(programs, OWN, few, long));
    figures.push(of("a long one taken over".to_owned(), [0.0, with.long]).below(THE_LONG_ONE));
    figures.push(of(format!("{few} without and beside it"), [without.others, with.others]).below(BESIDE));
    let remark = format!(
        "taken over: from the start of a daemon until the last session has the event, each in a turn and with {EVENTS} \
         events, after SIGKILL of the one before; a long one has {LONG}"
    );
    (figures, remark)
}

/// A world that also has the agent whose sessions share a process.
pub(super) fn with_shared(scratch: Scratch, programs: &Programs) -> Scratch {
    let scratch = scratch.agent(SHARED, &programs.acpd, &["example-agent".to_owned()]);
    scratch.config("share_process = true")
}

/// Begins `sessions` and one with `long` events, kills their daemon, and has the next one take over.
fn take_over(programs: &Programs, agent: &str, sessions: u64, long: u64) -> Times {
    let scratch = with_shared(programs.scratch().keep(KEEP), programs);
    let mut daemon = programs.serve(&scratch);
    let others: Vec<Session> = (0..sessions).map(|_| begin(&daemon, agent, EVENTS)).collect();
    let long = (long > 0).then(|| begin(&daemon, OWN, long));
    // What is in the log, all of it: the daemon is killed when nothing more comes.
    let others: Vec<(String, u64)> = others.into_iter().map(|session| settled(session, EVENTS)).collect();
    let long = long.map(|session| settled(session, LONG));
    daemon.kill();

    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().expect("it is after 1970").as_millis();
    let (begun, started) = (now(), u64::try_from(since_1970).expect("it is not far after") % DAY);
    let mut daemon = programs.serve(&scratch);
    let listens = millis(begun.elapsed());
    let mut http = Http::on(daemon.connect());
    let mut after = |session: &(String, u64)| reattached(&mut http, session, started);
    let others = others.iter().map(&mut after).fold(0.0, f64::max);
    let long = long.as_ref().map_or(0.0, &mut after);
    drop(http);
    daemon.stop();
    Times { listens, others, long }
}

/// A session whose turn goes on after so many events.
fn begin(daemon: &Daemon, agent: &str, events: u64) -> Session {
    Session::begin(daemon, agent, &format!("stream {events} {TEXT}\nhang"))
}

/// Waits until so many messages are in the log; its path, and the number of its last event.
fn settled(mut session: Session, messages: u64) -> (String, u64) {
    // created, run_started and prompt come before.
    let last = messages + 3;
    session.until(|info| info["eventCount"].as_u64().is_some_and(|count| count >= last));
    (session.path, last)
}

/// When a session was taken over: by what its log says, in milliseconds after `started`.
fn reattached(http: &mut Http, (path, last): &(String, u64), started: u64) -> f64 {
    let page = http.request("GET", &format!("{path}/events?after={last}"), &[], "").json();
    let event = &page["events"][0];
    assert_eq!(event["kind"], "reattached", "{page}");
    let at = event["at"].as_str().and_then(of_day).unwrap_or_else(|| panic!("this is no time: {event}"));
    // It may be past midnight.
    ((at + DAY - started) % DAY) as f64
}

/// Milliseconds since midnight in a time as `2026-01-31T23:59:59.999Z`.
fn of_day(time: &str) -> Option<u64> {
    let time = time.get(11..23)?;
    let number = |range| time.get(range).and_then(|digits: &str| digits.parse::<u64>().ok());
    let (hours, minutes, seconds) = (number(0..2)?, number(3..5)?, number(6..8)?);
    Some(((hours * 60 + minutes) * 60 + seconds) * 1000 + number(9..12)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_events_are_read() {
        for (time, expected) in [
            ("2026-01-31T00:00:00.000Z", Some(0)),
            ("2026-01-31T23:59:59.999Z", Some(DAY - 1)),
            ("2026-01-31", None),
            ("2026-01-31Tno:no:no.no.Z", None),
        ] {
            assert_eq!(of_day(time), expected, "{time}");
        }
    }
}
