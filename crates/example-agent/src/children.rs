//! What `fork` leaves behind: this program again, asleep, holding our standard output and error open.
//!
//! Invariants: a sleeper ends by itself after 1,000 seconds; none is ever waited for here.
//! Not process supervision: leaving orphans is the purpose.

use std::ffi::OsString;
use std::io::{self, Read};
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::command_line::{SLEEPER, SLEEPER_LAUNCHER};

const SLEEP: Duration = Duration::from_secs(1_000);

/// The arguments that lead to this agent in a program that has more to offer, such as `acpd example-agent`.
static WAY_HERE: OnceLock<Vec<OsString>> = OnceLock::new();

/// Notes how this program was called: everything before the agent's own arguments.
pub(crate) fn note_way_here(own_arguments: &[OsString]) {
    let all: Vec<OsString> = std::env::args_os().skip(1).collect();
    let way = all.strip_suffix(own_arguments).unwrap_or_default().to_vec();
    WAY_HERE.set(way).ok();
}

#[expect(
    clippy::disallowed_methods,
    reason = "the agent plays an unsupervised program; the keeper is what it tests"
)]
fn this_program(flag: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(WAY_HERE.get().into_iter().flatten()).arg(flag).stdin(Stdio::null());
    Ok(command)
}

/// A child in our own process group.
pub(crate) fn leave_in_group() -> io::Result<u32> {
    Ok(this_program(SLEEPER)?.spawn()?.id())
}

/// A grandchild in a session of its own whose parent is gone.
pub(crate) fn leave_in_own_session() -> io::Result<u32> {
    let (mut report, launcher_end) = io::pipe()?;
    // Its standard output is for the sleeper to hold, so the launcher reports on its standard input.
    let mut launcher = this_program(SLEEPER_LAUNCHER)?.stdin(launcher_end).spawn()?;
    let mut pid = String::new();
    let read = report.read_to_string(&mut pid);
    launcher.wait()?;
    read?;
    pid.parse().map_err(|_| io::Error::other("the launcher reported no process"))
}

/// The hidden `--sleeper`.
pub(crate) fn sleep() -> ExitCode {
    let (_never_sends, receiver) = std::sync::mpsc::sync_channel::<()>(0);
    receiver.recv_timeout(SLEEP).ok();
    ExitCode::SUCCESS
}

/// The hidden `--sleeper-launcher`.
pub(crate) fn launch_sleeper() -> ExitCode {
    let launched = rustix::process::setsid().map_err(io::Error::from).and_then(|_| leave_in_group());
    let reported =
        launched.and_then(|pid| Ok(rustix::io::write(rustix::stdio::stdin(), pid.to_string().as_bytes())?));
    if reported.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
