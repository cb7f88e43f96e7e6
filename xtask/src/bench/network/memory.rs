//! What an idle session and its viewers cost the daemon: one viewer of each on one WebSocket, as a client has that works
//! with many sessions, then another of each on an HTTP/1.1 connection of its own.

use super::super::peer::PeerError;
use super::super::program::Programs;
use super::super::report::Comparison;
use super::super::{Measurement, progress};
use super::Way;
use super::client::WebSocket;
use super::daemon::Daemon;

/// Sessions, with a viewer each.
const SESSIONS: usize = 1_000;
/// Sessions that come first, so that what is paid once is not counted.
const FIRST: usize = 20;
/// KiB that one may cost, with its viewer on the shared connection.
const KIB: f64 = 32.0;

pub(in super::super) fn measure(programs: &Programs) -> Result<(Vec<Measurement>, String), PeerError> {
    let daemon = Daemon::start(programs)?;
    progress(format_args!("memory: {SESSIONS} sessions, a turn and a viewer each"));
    let mut driver = WebSocket::connect(&daemon)?;
    let mut viewers = Vec::new();
    let mut sessions = Vec::new();
    for _ in 0..FIRST {
        sessions.push(live(&mut driver)?);
    }
    let base = daemon.memory();
    for _ in 0..SESSIONS {
        sessions.push(live(&mut driver)?);
    }
    let with_sessions = daemon.memory();
    for session in &sessions[FIRST..] {
        viewers.push(Way::Sse.watch(&daemon, session)?);
    }
    let with_viewers = daemon.memory();
    drop(viewers);
    daemon.stop()?;
    let each = |after: u64, before: u64| after.saturating_sub(before) as f64 / 1024.0 / SESSIONS as f64;
    let of = |name: &str, kib, comparison| Measurement {
        name: name.to_owned(),
        unit: "KiB",
        direct: 0.0,
        acpd: kib,
        comparison,
    };
    let measurements = vec![
        of("an idle session and a viewer", each(with_sessions, base), Comparison::Extra { below: KIB }),
        of("a viewer with a connection", each(with_viewers, with_sessions), Comparison::ExtraOnly),
    ];
    let base = base / 1024;
    Ok((
        measurements,
        format!("memory: anonymous pages of the daemon, {SESSIONS} sessions; before them {base} KiB"),
    ))
}

/// A session that has had a turn, and that its client watches.
fn live(driver: &mut WebSocket) -> Result<String, PeerError> {
    let session = driver.new_session()?;
    let prompt =
        format!("{{\"sessionId\":{session},\"prompt\":[{{\"type\":\"text\",\"text\":\"hello there\"}}]}}");
    driver.request("session/prompt", &prompt)?;
    Ok(session)
}
