//! The keeper: a small single-threaded process that owns one program and everything the program leaves behind.
//!
//! It is the same binary in a hidden subcommand, started with its control socket as stdin. It becomes a child
//! subreaper, starts the program in a process group of its own with the pipe ends it was handed (and keeps no
//! copy of them), reports the start, and later the end after *every* child it has is reaped. When the control
//! socket closes, because the daemon is gone by whatever means, it runs the same stop ladder by itself.
//!
//! Invariant: it exits only when it has no child left. Not here: pipes' contents, ACP, more than one program.

mod children;
mod memory;
pub(crate) mod protocol;
mod spawn;

use crate::ladder::{Ladder, LadderInput, LadderStep, Rung};
use crate::report::ExitStatus;
use children::Children;
use memory::OomKills;
use protocol::{Command, FromKeeper, StartFrame};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// While leftovers are being killed, how often they are looked for again even without a SIGCHLD: a descendant
/// may reach us (its parent being killed) just after a look.
const REAP_ROUND: Duration = Duration::from_millis(20);

/// Runs as a keeper: serves the control socket on stdin, then exits.
///
/// The exit code only matters to a person who calls this by hand; the daemon reads reports.
pub fn run() -> ExitCode {
    match keep() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // stderr is /dev/null under the daemon; by hand this line explains itself.
            let _ignored = writeln!(io::stderr(), "keeper: {error} (this subcommand is for acpd itself)");
            ExitCode::FAILURE
        }
    }
}

fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "the keeper is a shell around the ladder, which takes `now`"
    )]
    Instant::now()
}

fn keep() -> io::Result<()> {
    spawn::close_inherited();
    // Away from the terminal's signals: Ctrl-C in the daemon's terminal is the daemon's to interpret.
    let _already_leader = rustix::process::setsid();
    let containment = children::become_reaper();
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let signals = SignalPipe::open()?;
    take_back_ignored()?;
    let StartFrame { program, pipes } = StartFrame::receive(&control)?;
    let mut control = Control { socket: control, lost: false };
    let started = spawn::start(&program, pipes);
    // From here on the program alone holds its pipe ends: `pipes` was consumed.
    let leader = match started {
        Ok(pid) => pid,
        Err(failure) => {
            control.send(&FromKeeper::NotStarted(failure));
            return Ok(());
        }
    };
    control.send(&FromKeeper::Started { pid: leader.as_raw_nonzero().get().unsigned_abs(), containment });
    let mut keeper = Keeper {
        control,
        signals,
        leader,
        status: None,
        leader_is_dead: false,
        is_over: false,
        ladder: Ladder::new(program.graces, program.leftovers),
        children: Children::default(),
        memory: OomKills::watch(),
        oom_kills: 0,
    };
    keeper.serve()?;
    keeper.end_leftovers()?;
    let report = FromKeeper::Exited {
        status: keeper.status.unwrap_or(ExitStatus::Unknown),
        leaked: keeper.children.leaked(),
        rungs: keeper.ladder.used().to_vec(),
        oom_kills: keeper.oom_kills,
    };
    keeper.control.send(&report);
    Ok(())
}

struct Keeper {
    control: Control,
    signals: SignalPipe,
    leader: Pid,
    status: Option<ExitStatus>,
    leader_is_dead: bool,
    /// The program is dead, and what it left has no more time.
    is_over: bool,
    ladder: Ladder,
    children: Children,
    memory: OomKills,
    /// Since the start, as the leader's end was seen: what is killed later did not end it.
    oom_kills: u32,
}

impl Keeper {
    /// Until the program is dead and the time of what it left is over.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.look()?;
            // The starter may be gone before it was told of the start, and nothing wakes us for that.
            if self.control.lost && self.ladder.used().is_empty() {
                self.climb(LadderInput::Stop);
            }
            if self.is_over {
                return Ok(());
            }
            let timeout = self.ladder.deadline().map(|due| due.saturating_duration_since(now()));
            let (control, signal) = self.wait(timeout)?;
            if signal && self.signals.drain() {
                self.climb(LadderInput::Stop);
            }
            if control {
                self.obey();
            }
            self.climb(LadderInput::Tick);
        }
    }

    /// Does the next of what is asked.
    fn obey(&mut self) {
        match self.control.next() {
            Some(Command::Stop) => self.climb(LadderInput::Stop),
            Some(Command::Kill) => self.climb(LadderInput::Kill),
            None => {}
        }
    }

    fn climb(&mut self, input: LadderInput) {
        match self.ladder.handle(input, now()) {
            Some(LadderStep::Climb(Rung::Terminated)) => {
                let _gone = rustix::process::kill_process_group(self.leader, Signal::TERM);
                // A stopped program cannot act on SIGTERM.
                let _gone = rustix::process::kill_process_group(self.leader, Signal::CONT);
            }
            Some(LadderStep::Climb(Rung::Killed)) => {
                let _gone = rustix::process::kill_process_group(self.leader, Signal::KILL);
            }
            Some(LadderStep::EndLeftovers) => {
                self.children.see_leftovers(self.leader);
                let _gone = rustix::process::kill_process_group(self.leader, Signal::KILL);
                self.is_over = true;
            }
            // The daemon held the only other end of stdin and has closed it.
            Some(LadderStep::Climb(Rung::StdinClosed)) | None => {}
        }
    }

    /// Reaps what died, but not the leader: as long as it is a zombie, its process group id cannot be reused, so
    /// the group can be killed without hitting another process. It may die at any moment, also between the look at it
    /// and the reaping of others.
    fn look(&mut self) -> io::Result<()> {
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if !self.leader_is_dead && rustix::process::waitid(WaitId::Pid(self.leader), peek)?.is_some() {
            self.leader_is_dead = true;
            self.oom_kills = self.memory.since();
            // What was asked before it ended is what ended it.
            if self.wait(Some(Duration::ZERO))?.0 {
                self.obey();
            }
            self.climb(LadderInput::LeaderExited);
        }
        if self.is_over {
            return Ok(());
        }
        self.children.reap_others(self.leader);
        if self.leader_is_dead && !self.children.live_beside(self.leader) {
            self.climb(LadderInput::NothingLeft);
        }
        Ok(())
    }

    /// Reaps every dead child; false when no child is left at all.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid == self.leader {
                        let code = status.exit_status().map(ExitStatus::Code);
                        self.status =
                            code.or_else(|| status.terminating_signal().map(ExitStatus::from_signal));
                    }
                    self.children.reaped(pid);
                }
                Ok(None) => return Ok(true),
                Err(rustix::io::Errno::CHILD) => return Ok(false),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn end_leftovers(&mut self) -> io::Result<()> {
        while self.reap()? {
            self.children.kill_all();
            let (control, signal) = self.wait(Some(REAP_ROUND))?;
            if signal {
                self.signals.drain();
            }
            if control {
                // Whatever is asked now is being done already.
                let _command = self.control.next();
            }
        }
        Ok(())
    }

    /// Waits for the control socket or a signal; says which are ready.
    fn wait(&self, timeout: Option<Duration>) -> io::Result<(bool, bool)> {
        let mut fds = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        if !self.control.lost {
            fds.push(PollFd::new(&self.control.socket, PollFlags::IN));
        }
        // Rounded up, so that the deadline has passed when poll says so.
        let timeout = timeout.map(|t| rustix::event::Timespec {
            tv_sec: t.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: t.subsec_nanos().into(),
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok((fds.get(1).is_some_and(|fd| !fd.revents().is_empty()), !fds[0].revents().is_empty()))
    }
}

/// The control socket. Losing it is a fact to act on, not an error.
struct Control {
    socket: UnixStream,
    lost: bool,
}

impl Control {
    fn next(&mut self) -> Option<Command> {
        let mut byte = [0];
        match self.socket.read(&mut byte) {
            Ok(1) => Command::from_byte(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Ok(_) | Err(_) => {
                self.lost = true;
                None
            }
        }
    }

    fn send(&mut self, message: &FromKeeper) {
        if self.socket.write_all(&message.to_line()).is_err() {
            self.lost = true;
        }
    }
}

/// Signals that the daemon inherited as ignored (`nohup`, a shell's `&`) would be ignored by the program as
/// well. One that has a handler here has its default action there.
fn take_back_ignored() -> io::Result<()> {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Ok(()) };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // SIGPIPE is ignored by this program itself, and restored for every program that it starts.
    let ignored = (1..32).filter(|signal| mask & (1 << (signal - 1)) != 0);
    for signal in ignored.filter(|signal| *signal != signal_hook::consts::SIGPIPE) {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    Ok(())
}

/// Signals as bytes on a socket: SIGCHLD wakes, SIGTERM and its like ask to stop.
struct SignalPipe {
    child: UnixStream,
    stop: UnixStream,
}

impl SignalPipe {
    fn open() -> io::Result<Self> {
        use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
        use signal_hook::low_level::pipe::register;
        let (child, child_in) = UnixStream::pair()?;
        let (stop, stop_in) = UnixStream::pair()?;
        // One descriptor to poll: stop signals write to both.
        register(SIGCHLD, child_in.try_clone()?)?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            register(signal, stop_in.try_clone()?)?;
            register(signal, child_in.try_clone()?)?;
        }
        child.set_nonblocking(true)?;
        stop.set_nonblocking(true)?;
        Ok(Self { child, stop })
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.child.as_fd()
    }

    /// Takes everything that is there; true when one of the signals asked to stop.
    fn drain(&mut self) -> bool {
        let mut bytes = [0; 256];
        while matches!(self.child.read(&mut bytes), Ok(n) if n > 0) {}
        matches!(self.stop.read(&mut bytes), Ok(n) if n > 0)
    }
}
