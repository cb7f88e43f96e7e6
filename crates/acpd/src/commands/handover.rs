//! `acpd handover`: has a daemon go on as the binary that is on disk now, and waits until that answers.

use super::stop::{MOST, ended};
use crate::clean::line;
use crate::cli::Operate;
use crate::daemon::{Daemon, DaemonError, Session, SessionFilter, need_daemon_to_change};
use crate::exit::{Code, Failure};
use crate::signals::StopSignals;
use crate::streams::{print, print_json, remark};
use http::Method;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::Instant;

/// How long the new binary may take to say whether it could start; the daemon gives it half a minute.
const ACCEPTED: Duration = Duration::from_secs(45);
/// How often it is looked whether it answers, and how long one look may take.
const LOOK: Duration = Duration::from_millis(25);
const ANSWER: Duration = Duration::from_secs(5);
/// After which it is said what is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the next image may take to answer. Sessions that cannot go on end before, each by its ladder.
const BOUND: Duration = Duration::from_secs(120);

/// What a daemon says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Health {
    version: String,
    uptime_ms: u64,
}

/// What it says of what takes its place.
#[derive(Deserialize)]
struct HandingOver {
    version: String,
}

pub(crate) async fn handover(args: Operate) -> Result<(), Failure> {
    let daemon = need_daemon_to_change(args.which).await?;
    let filter = SessionFilter { ended: Some(false), ..SessionFilter::default() };
    // One that cannot tell hands over all the same.
    let live = daemon.own_sessions(&filter, MOST).await.ok();
    let before: Health = daemon.get("/v1/health").await?;
    let mut signals = StopSignals::listen()?;
    let begun = Instant::now();
    let accepted = ask(&daemon).await?;
    let after = tokio::select! {
        after = until_it_answers(&daemon, begun, &accepted) => after?,
        () = signals.next() => {
            remark("the daemon goes on handing over");
            return Err(Failure::Told(Code::Interrupted));
        }
    };
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let pid = daemon.process().await.ok().flatten().map(|process| process.as_raw_nonzero().get());
    let (from, to) = (line(&before.version, 40), line(&after.version, 40));
    let now = daemon.own_sessions(&filter, MOST).await.ok();
    let live = live.zip(now).map(|((before, more), (now, _))| Live::of(&before, &now, more));
    if args.json {
        let (sessions, went_on) = (live.map(|live| live.went_on + live.ended), live.map(|live| live.went_on));
        let told = json!({
            "handedOver": true, "from": from, "to": to, "ms": ms, "pid": pid, "sessions": sessions, "wentOn": went_on
        });
        return print_json(&told.to_string()).map(drop);
    }
    let process = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let sessions = live.map(Live::told).unwrap_or_default();
    print(&format!("acpd {from} handed over to acpd {to} in {ms} ms{process}{sessions}")).map(drop)
}

/// Asks for it. Where others do so too, it is one for all of them, or one more behind theirs.
async fn ask(daemon: &Daemon) -> Result<HandingOver, DaemonError> {
    let begun = Instant::now();
    loop {
        match daemon.ask_within(Method::POST, "/v1/handover", ACCEPTED).await {
            Err(error) if is_crowded(&error) && begun.elapsed() < ACCEPTED => {
                tokio::time::sleep(LOOK).await;
            }
            asked => return asked,
        }
    }
}

/// Whether others were faster: as many as may wait for the daemon, or one for which it has gone already.
fn is_crowded(error: &DaemonError) -> bool {
    match error {
        DaemonError::Refused { problem } => problem.name == "busy",
        error => error.was_there(),
    }
}

/// What became of the sessions that were live before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Live {
    went_on: usize,
    ended: usize,
    /// There were more, which are not counted.
    more: bool,
}

impl Live {
    fn of(before: &[Session], now: &[Session], more: bool) -> Self {
        let now: HashSet<&str> = now.iter().map(|session| &*session.session_id).collect();
        let went_on = before.iter().filter(|session| now.contains(&*session.session_id)).count();
        Self { went_on, ended: before.len() - went_on, more }
    }

    fn told(self) -> String {
        let Self { went_on, ended: over, more } = self;
        let of_those = if went_on == 0 || over > 0 { ended(Some((over, more))) } else { String::new() };
        let more = if more && over == 0 { " or more" } else { "" };
        match went_on {
            0 => of_those,
            1 => format!("; 1 session went on{of_those}"),
            count => format!("; {count}{more} sessions went on{of_those}"),
        }
    }
}

/// Waits for the next image. Its sockets stay open meanwhile: where nothing listens, there will be none.
async fn until_it_answers(
    daemon: &Daemon,
    begun: Instant,
    accepted: &HandingOver,
) -> Result<Health, Failure> {
    let mut told = false;
    loop {
        match daemon.get_within::<Health>("/v1/health", ANSWER).await {
            Ok(health) if is_next(&health, begun.elapsed()) => return Ok(health),
            Err(error) if has_ended(&error) => {
                let version = line(&accepted.version, 40);
                return Err(Failure::Failed(format!(
                    "the daemon has ended, and acpd {version} did not take its place ({error}); its log says why, and \
                     `acpd serve` starts it"
                )));
            }
            // The old one, which has not ended yet, or an answer on its way from it.
            Ok(_) | Err(_) => {}
        }
        if begun.elapsed() >= BOUND {
            return Err(Failure::Failed(silent(daemon, accepted).await));
        }
        if begun.elapsed() >= PATIENCE && !told {
            told = true;
            remark("sessions that cannot go on are ending; Ctrl-C leaves it");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What to do about an image that does not answer.
async fn silent(daemon: &Daemon, accepted: &HandingOver) -> String {
    let (version, seconds) = (line(&accepted.version, 40), BOUND.as_secs());
    let pid = daemon.process().await.ok().flatten().map(|process| process.as_raw_nonzero());
    let end = pid.map_or_else(|| "end it".to_owned(), |pid| format!("end it with `kill {pid}`"));
    format!(
        "the daemon was to hand over to acpd {version}, which has not answered for {seconds} s: its log says why; if it \
         stays so, {end}, install an acpd that works, and start `acpd serve`, for which agents wait as [continuity] keep says"
    )
}

/// Whether nothing listens any more.
fn has_ended(error: &DaemonError) -> bool {
    match error {
        DaemonError::Absent { .. } => true,
        // As many wait to be taken as may.
        DaemonError::Connect { source, .. } => source.kind() != ErrorKind::WouldBlock,
        _ => false,
    }
}

/// Whether what answers began after the request: the old image was there before.
fn is_next(health: &Health, since_asked: Duration) -> bool {
    u128::from(health.uptime_ms) <= since_asked.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use acpd_gateway::local_socket_path;

    // contract 7.3: what went on is told apart from what ended
    #[test]
    fn what_became_of_sessions_is_told() {
        for (went_on, ended, more, told) in [
            (0, 0, false, "; no session was live"),
            (0, 1, false, "; 1 session ended, and can be taken up again"),
            (1, 0, false, "; 1 session went on"),
            (2, 3, false, "; 2 sessions went on; 3 sessions ended, and can be taken up again"),
            (2, 0, true, "; 2 or more sessions went on"),
        ] {
            assert_eq!(Live { went_on, ended, more }.told(), told);
        }
    }

    // contract 7.1: an image that takes connections and does not answer is not waited for without end
    #[tokio::test(start_paused = true)]
    async fn a_silent_image_is_given_up() {
        let dir = tempfile::tempdir().expect("a directory");
        let _silent =
            std::os::unix::net::UnixListener::bind(local_socket_path(dir.path())).expect("a socket");
        let daemon = Daemon::new(Address::Local(dir.path().to_owned()), None, None);
        let accepted = HandingOver { version: "9".to_owned() };
        let given_up = until_it_answers(&daemon, Instant::now(), &accepted).await;
        let told = given_up.expect_err("it is silent").to_string();
        assert!(
            told.contains("acpd 9, which has not answered for 120 s") && told.contains("acpd serve"),
            "{told}"
        );
    }

    // contract 7.1: the next image is known by when it began
    #[test]
    fn the_next_image_began_after_the_request() {
        for (uptime_ms, since_asked, next) in
            [(0, 0, true), (5, 100, true), (100, 99, false), (9_000, 100, false)]
        {
            let health = Health { uptime_ms, ..Health::default() };
            assert_eq!(
                is_next(&health, Duration::from_millis(since_asked)),
                next,
                "{uptime_ms} {since_asked}"
            );
        }
    }
}
