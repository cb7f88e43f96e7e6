//! What the front door of a daemon costs: messages to viewers, round trips, memory, the start.
//!
//! Viewers are threads that read bytes and look for the last message; what they do with them is not measured. The
//! newline counter of the throughput measurement runs in the same minute.

mod client;
mod daemon;
mod memory;
mod socket;

use super::figures::{median, micros, millis, shown};
use super::peer::PeerError;
use super::processor::OnOne;
use super::program::{Programs, Side};
use super::report::Comparison;
use super::throughput::stream;
use super::{Measurement, now, progress};
use client::{Http, WebSocket, watch};
use daemon::Daemon;
use socket::Socket;

pub(super) use memory::measure as measure_memory;

/// Bytes of text in a message.
const TEXT: usize = 200;
/// Comes last, as a message of its own.
const LAST: &str = "that-was-all";
/// What must be left of the newline counter's figure with one viewer.
const SHARE: f64 = 0.1;
/// What must be left of that for each of sixteen.
const SIXTEENTH: f64 = SHARE / 3.0;
/// Requests of each kind that count, in turns of [`BLOCK`].
const REQUESTS: usize = 3_000;
const BLOCK: usize = 250;
/// How many times a look at its health a request over HTTP may take.
const TIMES: f64 = 1.5;
/// Starts of a daemon.
const STARTS: usize = 20;
/// Milliseconds in which a daemon listens.
const LISTENS: f64 = 50.0;

/// How a viewer watches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Sse,
    WebSocket,
}

impl Way {
    const BOTH: [Self; 2] = [Self::Sse, Self::WebSocket];

    fn name(self) -> &'static str {
        match self {
            Self::Sse => "SSE",
            Self::WebSocket => "WebSocket",
        }
    }

    /// Attaches to a session.
    fn watch(self, daemon: &Daemon, session: &str) -> Result<Socket, PeerError> {
        match self {
            Self::Sse => {
                let path = format!("/v1/sessions/{}/events", session.trim_matches('"'));
                let mut socket = watch(daemon, &path, "")?;
                socket.until(b"run_started")?;
                Ok(socket)
            }
            Self::WebSocket => {
                let mut client = WebSocket::connect(daemon)?;
                let params = format!("{{\"sessionId\":{session},\"cwd\":\"/\",\"mcpServers\":[]}}");
                client.request("session/load", &params)?;
                Ok(client.socket)
            }
        }
    }
}

/// Messages a second to 1, 4 and 16 viewers.
pub(super) fn measure_viewers(
    programs: &Programs,
    messages: u64,
    rounds: u64,
) -> Result<(Vec<Measurement>, String), PeerError> {
    let mut measurements = Vec::new();
    for way in Way::BOTH {
        for viewers in [1, 4, 16] {
            let (mut direct, mut seen) = (Vec::new(), Vec::new());
            let messages = messages / if viewers == 16 { 4 } else { 1 };
            for round in 1..=rounds {
                direct.push(stream(programs, Side::Direct, messages)?.per_second);
                let each = flow(programs, way, viewers, messages)?;
                progress(format_args!(
                    "{} viewers {viewers}, {round}/{rounds}: {} messages/s each",
                    way.name(),
                    shown(each)
                ));
                seen.push(each);
            }
            let comparison = match (way, viewers) {
                (Way::Sse, 1) => Comparison::Share { at_least: SHARE },
                (_, 16) => Comparison::Share { at_least: SIXTEENTH },
                _ => Comparison::Times,
            };
            measurements.push(Measurement {
                name: format!("{viewers} {} viewer{}", way.name(), if viewers == 1 { "" } else { "s, each" }),
                unit: "messages/s",
                direct: median(&mut direct),
                acpd: median(&mut seen),
                comparison,
            });
        }
    }
    let remark = format!(
        "viewers: the slowest of them, medians of {rounds} rounds of {} messages (a quarter with 16) of {TEXT} bytes \
         of text; direct is the newline counter in the same minute",
        shown(messages as f64)
    );
    Ok((measurements, remark))
}

/// What the slowest of so many viewers gets, in messages a second.
fn flow(programs: &Programs, way: Way, viewers: usize, messages: u64) -> Result<f64, PeerError> {
    let daemon = Daemon::start(programs)?;
    let mut driver = WebSocket::connect(&daemon)?;
    let session = driver.new_session()?;
    let sockets = (0..viewers).map(|_| way.watch(&daemon, &session)).collect::<Result<Vec<_>, _>>()?;
    let prompt = format!(
        "{{\"sessionId\":{session},\"prompt\":[{{\"type\":\"text\",\"text\":\"stream {messages} {TEXT}\\n{LAST}\"}}]}}"
    );
    let mark = format!("\"text\":\"{LAST}\"");
    let begun = now();
    driver.send("session/prompt", &prompt)?;
    // Not a viewer itself.
    driver.send("_sandboxagent/session/detach", &format!("{{\"sessionId\":{session}}}"))?;
    let watching: Vec<_> = sockets
        .into_iter()
        .map(|mut socket| {
            let mark = mark.clone();
            std::thread::spawn(move || socket.skip_to(mark.as_bytes()).map(|()| begun.elapsed()))
        })
        .collect();
    let mut slowest = 0.0_f64;
    for viewer in watching {
        let took = viewer.join().map_err(|_| PeerError::Ended)??;
        slowest = slowest.max(took.as_secs_f64());
    }
    daemon.stop()?;
    Ok(messages as f64 / slowest)
}

/// Requests over a connection that stays open, next to a look at the daemon's health over one.
pub(super) fn measure_roundtrips(programs: &Programs) -> Result<(Vec<Measurement>, String), PeerError> {
    let mut measurements = Vec::new();
    match OnOne::enter() {
        Some(on_one) => {
            measurements.extend(roundtrips(programs, ", one processor")?);
            drop(on_one);
            measurements.extend(roundtrips(programs, ", any processor")?);
        }
        None => measurements.extend(roundtrips(programs, "")?),
    }
    let remark = format!(
        "round trips over the network: medians of {} requests each, in turns of {BLOCK}; direct is GET /v1/health on a \
         connection that stays open",
        shown(REQUESTS as f64)
    );
    Ok((measurements, remark))
}

fn roundtrips(programs: &Programs, place: &str) -> Result<Vec<Measurement>, PeerError> {
    let daemon = Daemon::start(programs)?;
    progress(format_args!("round trips over the network{place}"));
    let mut health = Socket::connect(&daemon)?;
    let mut http = Http::connect(&daemon)?;
    let mut websocket = WebSocket::connect(&daemon)?;
    let of_http = format!("{{\"sessionId\":\"{}\"}}", http.new_session(&daemon)?);
    let of_websocket = format!("{{\"sessionId\":{}}}", websocket.new_session()?);
    let path = format!("GET /v1/sessions/{}", of_websocket.split('"').nth(3).unwrap_or_default());
    let mut times: [Vec<f64>; 6] = Default::default();
    for round in 0..=REQUESTS / BLOCK {
        for _ in 0..BLOCK {
            let begun = now();
            health.request("GET /v1/health", "", "")?;
            times[0].push(micros(begun.elapsed()));
        }
        for _ in 0..BLOCK {
            let begun = now();
            health.request(&path, "", "")?;
            times[1].push(micros(begun.elapsed()));
        }
        for _ in 0..BLOCK {
            let [accepted, answered] = http.request("_example/ping", &of_http)?;
            times[2].push(micros(accepted));
            times[3].push(micros(answered));
        }
        for _ in 0..BLOCK {
            let begun = now();
            websocket.request("_example/ping", &of_websocket)?;
            times[4].push(micros(begun.elapsed()));
        }
        for _ in 0..BLOCK {
            times[5].push(micros(http.notify()?));
        }
        if round == 0 {
            // To warm up.
            times.iter_mut().for_each(Vec::clear);
        }
    }
    daemon.stop()?;
    let [health, show, accepted, http, websocket, noticed] = times.each_mut().map(|times| median(times));
    let of = |name: &str, acpd, comparison| Measurement {
        name: format!("{name}{place}"),
        unit: "us",
        direct: health,
        acpd,
        comparison,
    };
    Ok(vec![
        of("POST of a notification", noticed, Comparison::AtMost { times: TIMES }),
        // On one processor the agent is asked meanwhile.
        of("POST of a request, to its 202", accepted, Comparison::Times),
        of("GET of a session", show, Comparison::Times),
        of("agent and back over HTTP", http, Comparison::Times),
        of("agent and back over WebSocket", websocket, Comparison::Times),
    ])
}

/// From the start of a daemon to its first line.
pub(super) fn measure_start(programs: &Programs) -> Result<(Vec<Measurement>, String), PeerError> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let daemon = Daemon::start(programs)?;
        times.push(millis(daemon.listened_after));
        daemon.stop()?;
    }
    let measurement = Measurement {
        name: "a daemon listens".to_owned(),
        unit: "ms",
        direct: 0.0,
        acpd: median(&mut times),
        comparison: Comparison::Extra { below: LISTENS },
    };
    Ok((vec![measurement], format!("a daemon listens: median of {STARTS} starts")))
}
