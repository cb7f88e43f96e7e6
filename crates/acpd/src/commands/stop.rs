//! `acpd stop`: ends a daemon of this machine, and waits until it is gone.

use crate::address::Address;
use crate::cli::Operate;
use crate::config::Config;
use crate::daemon::{Daemon, SessionFilter, need_daemon};
use crate::exit::{Code, Failure};
use crate::signals::StopSignals;
use crate::stored::Stored;
use crate::streams::{print, print_json, remark, remark_over};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// How often it is looked whether the process is there.
const LOOK: Duration = Duration::from_millis(25);
/// After which it is said what is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time that keepers, and the locks of a process, have for what takes them milliseconds: a machine may be busy.
const SETTLED: Duration = Duration::from_secs(5);
/// Live sessions that are counted at most.
pub(super) const MOST: usize = 2_000;

pub(crate) async fn stop(args: Operate) -> Result<(), Failure> {
    let daemon = need_daemon(args.which).await?;
    let process = stoppable(&daemon).await?;
    let filter = SessionFilter { ended: Some(false), ..SessionFilter::default() };
    // One that cannot tell is stopped all the same.
    let live = daemon.own_sessions(&filter, MOST).await.ok().map(|(sessions, more)| (sessions.len(), more));
    let mut signals = StopSignals::listen()?;
    ask(process)?;
    until_gone(process, &mut signals).await?;
    let pid = process.as_raw_nonzero();
    let waiting = match daemon.address() {
        Address::Local(state_dir) if live.is_none_or(|(count, _)| count > 0) => {
            waiting(state_dir).await.unwrap_or(0)
        }
        Address::Local(_) | Address::Unix(_) | Address::Tcp { .. } => 0,
    };
    if args.json {
        let sessions = live.map(|(count, _)| count);
        let told = json!({"stopped": true, "pid": pid, "sessions": sessions, "waiting": waiting});
        return print_json(&told.to_string()).map(drop);
    }
    print(&format!("stopped the daemon (pid {pid}){}", became(live, waiting))).map(drop)
}

/// How many sessions of a daemon that is gone wait for the next one (`on_stop = "keep"`).
async fn waiting(state_dir: &Path) -> Result<usize, Failure> {
    let mut config = Config::default();
    config.storage.path = state_dir.to_owned();
    let stored = Stored::open_as_it_is(&config)?;
    let counted = count_waiting(&stored).await;
    stored.close().await;
    counted
}

async fn count_waiting(stored: &Stored) -> Result<usize, Failure> {
    let begun = Instant::now();
    loop {
        let filter = SessionFilter { ended: Some(false), ..SessionFilter::default() };
        let (sessions, _) = stored.sessions(filter, MOST, false).await?;
        let waiting = sessions.iter().filter(|session| session.detached_since.is_some()).count();
        // The locks of a process stay a moment longer than the process can be seen; and others may have live sessions.
        if waiting == sessions.len() || begun.elapsed() >= SETTLED {
            return Ok(waiting);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The process that can be stopped from here.
async fn stoppable(daemon: &Daemon) -> Result<Pid, Failure> {
    let at = daemon.address();
    if matches!(at, Address::Tcp { .. }) {
        return Err(Failure::Usage(format!(
            "`acpd stop` ends a daemon of this machine, by its socket; the one at {at} is stopped where it runs, by \
             `acpd stop` or `systemctl stop acpd` there"
        )));
    }
    daemon.process().await?.ok_or_else(|| {
        Failure::Failed(format!(
            "the process of the daemon at {at} cannot be seen from here; it runs in a container, perhaps, and is stopped \
             by what started that"
        ))
    })
}

fn ask(process: Pid) -> Result<(), Failure> {
    match kill_process(process, Signal::TERM) {
        // It is gone, which is what was asked for.
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(Failure::Failed(format!(
            "cannot stop the daemon (pid {}): {}; call as the user that it runs as",
            process.as_raw_nonzero(),
            std::io::Error::from(error)
        ))),
    }
}

/// Waits. The first signal has the daemon hurry, the second leaves it.
async fn until_gone(process: Pid, signals: &mut StopSignals) -> Result<(), Failure> {
    let (begun, pid) = (Instant::now(), process.as_raw_nonzero());
    let is_terminal = std::io::stderr().is_terminal();
    let (mut hurried, mut told) = (false, None);
    while is_there(process) {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = signals.next() => {
                if hurried {
                    remark(&format!("the daemon (pid {pid}) goes on stopping"));
                    return Err(Failure::Told(Code::Interrupted));
                }
                hurried = true;
                ask(process)?;
            }
        }
        let seconds = begun.elapsed().as_secs();
        if begun.elapsed() >= PATIENCE && told != Some(seconds) && (is_terminal || told.is_none()) {
            told = Some(seconds);
            let line = progress(pid.get(), seconds, hurried);
            match is_terminal {
                true => remark_over(&line),
                false => remark(&line),
            }
        }
    }
    if is_terminal && told.is_some() {
        remark_over("");
    }
    Ok(())
}

fn progress(pid: i32, seconds: u64, hurried: bool) -> String {
    let keys = if hurried { "Ctrl-C leaves it" } else { "Ctrl-C kills the rest" };
    format!("stopping pid {pid}, {seconds} s; {keys}")
}

/// Whether a process runs: one that has ended and was not waited for by its parent does not.
fn is_there(process: Pid) -> bool {
    if test_kill_process(process).is_err_and(|error| error == rustix::io::Errno::SRCH) {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.map_or(true, |stat| !has_ended(&stat))
}

/// By `/proc/PID/stat`, where the state follows on the name in parentheses.
fn has_ended(stat: &str) -> bool {
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    matches!(state, Some("Z" | "X"))
}

/// What became of its sessions, of which so many wait.
fn became(live: Option<(usize, bool)>, waiting: usize) -> String {
    let over = live.map(|(count, more)| (count.saturating_sub(waiting), more));
    let over = over.filter(|(count, _)| waiting == 0 || *count > 0);
    let waiting = match waiting {
        0 => String::new(),
        1 => "; 1 session waits for the next daemon".to_owned(),
        count => format!("; {count} sessions wait for the next daemon"),
    };
    format!("{waiting}{}", ended(over))
}

/// What is said of sessions that ended.
pub(super) fn ended(live: Option<(usize, bool)>) -> String {
    let more = if live.is_some_and(|(_, more)| more) { " or more" } else { "" };
    match live {
        None => String::new(),
        Some((0, _)) => "; no session was live".to_owned(),
        Some((1, _)) => "; 1 session ended, and can be taken up again".to_owned(),
        Some((count, _)) => format!("; {count}{more} sessions ended, and can be taken up again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: stop says how many sessions ended, and how many wait; a process that was not waited for is gone
    #[test]
    fn what_became_of_sessions_is_counted() {
        for (live, told) in [
            (None, ""),
            (Some((0, false)), "; no session was live"),
            (Some((1, false)), "; 1 session ended, and can be taken up again"),
            (Some((2_000, true)), "; 2000 or more sessions ended, and can be taken up again"),
        ] {
            assert_eq!(ended(live), told);
        }
        for (live, waiting, told) in [
            (Some((2, false)), 0, "; 2 sessions ended, and can be taken up again"),
            (Some((2, false)), 2, "; 2 sessions wait for the next daemon"),
            (
                Some((2, false)),
                1,
                "; 1 session waits for the next daemon; 1 session ended, and can be taken up again",
            ),
            (None, 1, "; 1 session waits for the next daemon"),
        ] {
            assert_eq!(became(live, waiting), told);
        }
        for (stat, gone) in
            [("7 (acpd) S 1 7", false), ("7 (a) Z) R 1 7", false), ("7 (acpd) Z 1 7", true), ("", false)]
        {
            assert_eq!(has_ended(stat), gone, "{stat}");
        }
        assert!(progress(4_000_000, 100, false).len() <= 60);
    }
}
