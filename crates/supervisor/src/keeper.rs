//! The keeper: a small single-threaded process that owns one program and everything the program leaves behind.
//!
//! It is the same binary in a hidden subcommand, started with its control socket as stdin. It becomes a child
//! subreaper, starts the program in a process group of its own with the pipe ends it was handed (and keeps no
//! copy of them), reports the start, and later the end after *every* child it has is reaped. When the control
//! socket closes, because the daemon is gone by whatever means, it runs the same stop ladder by itself.
//!
//! Of a *kept* program it holds our ends of the streams too: it writes stdin, reads stderr, and takes out of stdout what
//! the daemon says it has read. Once it was told to keep the program, a closed control socket is no reason to end it for some
//! time: it listens for the next daemon, which finds all that the last one had not settled, or, in a file, the end.
//!
//! SIGTERM is the ladder too, in every version: a daemon that shares no version with a keeper ends its program so.
//!
//! Invariant: it exits only when it has no child left. Not here: ACP, more than one program.

mod children;
mod connection;
mod deadline;
mod end_file;
pub(crate) mod frames;
mod input;
mod kept;
pub(crate) mod listening;
mod machine;
mod marks;
mod memory;
mod output;
mod program;
pub(crate) mod protocol;
mod pty;
mod signals;
mod spawn;
pub(crate) mod start_frame;

use crate::ladder::LadderInput;
use connection::Connection;
use deadline::Deadline;
use frames::{Frame, LONGEST};
use kept::{Kept, Left, STREAMS};
use machine::Loss;
use program::{End, Life, Program};
use protocol::{Alive, Command, Exited, FromKeeper, Running, VERSIONS, Why};
use rustix::event::{PollFd, PollFlags, poll};
use signals::{SignalPipe, take_back_ignored};
use start_frame::StartFrame;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Pieces of a flood of requests that are taken before anything else has its turn.
const PIECES: usize = 4;

/// Runs as a keeper: serves the control socket on stdin, then exits.
///
/// The exit code only matters to a person who calls this by hand; the daemon reads reports.
pub fn run() -> ExitCode {
    run_speaking(VERSIONS)
}

/// The same, for a keeper that speaks other versions of the protocol, from the oldest to the newest: only tests of what
/// becomes of its program have one.
pub fn run_speaking(versions: [u32; 2]) -> ExitCode {
    match keep(versions) {
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

fn keep(versions: [u32; 2]) -> io::Result<()> {
    spawn::close_inherited();
    // Away from the terminal's signals: Ctrl-C in the daemon's terminal is the daemon's to interpret.
    let _already_leader = rustix::process::setsid();
    let containment = children::become_reaper();
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let signals = SignalPipe::open()?;
    take_back_ignored()?;
    let StartFrame { program, pipes, other_ends } = StartFrame::receive(&control)?;
    let mut control = Connection::new(control)?;
    let started = spawn::start(&program, pipes);
    // From here on the program alone holds its pipe ends: `pipes` was consumed.
    let leader = match started {
        Ok(pid) => pid,
        Err(failure) => {
            control.send(&FromKeeper::NotStarted(failure));
            return Ok(());
        }
    };
    let running = Running { pid: leader.as_raw_nonzero().get().unsigned_abs(), containment };
    control.send(&FromKeeper::Started(running));
    let is_pty = program.controls_terminal;
    let graces = program.graces;
    let kept = other_ends.map(|ends| Box::new(Kept::new(running, graces, versions, ends, is_pty)));
    let program = Program::new(leader, graces, program.leftovers);
    let deadline = Deadline::new(graces);
    Keeper { control, signals, program, kept, looks: true, is_done: false, deadline }.serve()
}

struct Keeper {
    control: Connection,
    signals: SignalPipe,
    program: Program,
    /// Of a program that may outlive its daemon.
    kept: Option<Box<Kept>>,
    /// A child may have died.
    looks: bool,
    /// The end was recorded.
    is_done: bool,
    /// By when the program ends, unless a daemon says otherwise before: also one that is stopped would.
    deadline: Deadline,
}

/// What of a kept program can be ready.
struct Ready {
    signal: bool,
    control: bool,
    /// As [`Kept::poll`] has them.
    streams: [PollFlags; STREAMS],
    listening: bool,
}

impl Keeper {
    /// Until the program is dead, the time of what it left is over, and someone knows of it.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.look()?;
            // The starter may be gone before it was told of the start, and nothing wakes us for that.
            self.see_loss();
            if self.program.life() == Life::Over && self.is_finished() {
                return Ok(());
            }
            let ready = self.wait()?;
            self.looks = ready.signal;
            if ready.signal && self.signals.drain() {
                self.climb(LadderInput::Stop);
                // Nothing is left to stop but the wait for someone that records the end.
                self.is_done |= self.program.life() == Life::Over && self.control.is_lost();
            }
            if ready.control {
                self.hear();
            }
            self.move_streams(&ready);
            self.climb(LadderInput::Tick);
        }
    }

    /// Sees what of the program died.
    fn look(&mut self) -> io::Result<()> {
        // What is asked for a running program is no reason to look at all its children.
        if !self.looks && self.program.is_quiet() {
            return Ok(());
        }
        if self.program.has_just_died()? {
            self.hear();
            self.climb(LadderInput::LeaderExited);
        }
        self.program.reap()
    }

    fn climb(&mut self, input: LadderInput) {
        let before = self.program.rungs().len();
        self.program.climb(input);
        if let Some(kept) = &mut self.kept
            && self.program.rungs().len() > before
        {
            kept.stopping(&mut self.control);
        }
    }

    /// Does all that is asked.
    fn hear(&mut self) {
        for _ in 0..PIECES {
            let has_more = self.control.fill();
            loop {
                match self.control.next(LONGEST) {
                    Ok(Some(frame)) => self.obey(frame),
                    Ok(None) => break,
                    Err(_) => return self.control.refuse(Why::Misbehaved),
                }
            }
            if !has_more {
                break;
            }
        }
    }

    fn obey(&mut self, frame: Frame) {
        let cost = frame.body.len();
        let is_heeded = match Command::read(frame) {
            Ok(None | Some(Command::Hello(_))) => true,
            Ok(Some(Command::Stop)) => {
                self.climb(LadderInput::Stop);
                true
            }
            Ok(Some(Command::Kill)) => {
                self.climb(LadderInput::Kill);
                true
            }
            Ok(Some(Command::Done)) => {
                self.is_done |= self.program.life() == Life::Over;
                true
            }
            Ok(Some(Command::Alive(Alive { within_ms }))) => {
                let after = |ms| now().checked_add(Duration::from_millis(ms));
                self.deadline.set(within_ms.and_then(after));
                true
            }
            Ok(Some(command)) => {
                self.kept.as_mut().is_none_or(|kept| kept.obey(command, cost, &mut self.control).is_ok())
            }
            Err(_) => false,
        };
        if !is_heeded {
            self.control.refuse(Why::Misbehaved);
        }
    }

    /// The daemon may be gone, or has not said in time that it is there. If the program is not kept for the next one, it is to end,
    /// unless that was asked for.
    fn see_loss(&mut self) {
        let is_lost = match &mut self.kept {
            None => self.control.is_lost(),
            Some(kept) if self.control.is_lost() && kept.machine.is_attached() => {
                match kept.machine.lost(now()) {
                    Loss::Ladder => true,
                    Loss::Detached => {
                        kept.listening.iter().for_each(listening::Listening::note_detached);
                        false
                    }
                }
            }
            Some(kept) => kept.machine.tick(now()),
        };
        let mut input = is_lost.then_some(LadderInput::Stop);
        loop {
            input = input.or_else(|| self.deadline.tick(now()));
            match input.take() {
                None => return,
                // Asked for a second time it would be a kill.
                Some(LadderInput::Stop) if !self.program.rungs().is_empty() => {}
                Some(input) => self.climb(input),
            }
        }
    }

    /// What is left of the program is told; whether there is nothing more to do.
    fn is_finished(&mut self) -> bool {
        let end = self.program.end();
        let Some(kept) = &mut self.kept else {
            let End { status, leaked, rungs, oom_kills } = end;
            self.control.send(&FromKeeper::Exited(Exited { status, leaked, rungs, oom_kills, stderr: None }));
            return true;
        };
        kept.ended(end, &mut self.control);
        let is_finished = self.is_done || (self.control.is_lost() && matches!(kept.leave(), Left::Nothing));
        if let Some(listening) = kept.listening.as_ref().filter(|_| is_finished) {
            listening.close();
        }
        is_finished
    }

    /// Moves what can be moved.
    fn move_streams(&mut self, ready: &Ready) {
        let Some(kept) = &mut self.kept else { return };
        let [stdin, stdout, stderr, pty] = ready.streams;
        if stdin.contains(PollFlags::ERR) {
            kept.no_reader(&mut self.control);
        } else if stdin.contains(PollFlags::OUT) {
            kept.write_stdin(&mut self.control);
        }
        if !pty.is_empty() {
            kept.fill();
        }
        if !stdout.is_empty() {
            kept.consume();
        }
        if !stderr.is_empty() {
            kept.read_stderr(&mut self.control);
        }
        if ready.control {
            self.control.flush(Some(&kept.machine.output));
        }
        if ready.listening
            && let Some(listening) = &mut kept.listening
            && let Some(newest) = listening.look(|key| kept.machine.may_attach(key))
        {
            self.control.refuse(Why::Superseded);
            self.control = newest;
            self.deadline.set(None);
            kept.attach(&mut self.control);
        }
    }

    /// Waits until something can be done.
    fn wait(&self) -> io::Result<Ready> {
        let due = self.program.due().into_iter().chain(self.kept.as_ref().and_then(|kept| kept.due()));
        let due = due.chain(self.deadline.due()).min();
        // Rounded up, so that the deadline has passed when poll says so.
        let timeout = due.map(|due| timespec(due.saturating_duration_since(now())));
        let streams = self.kept.as_ref().map(|kept| kept.poll()).unwrap_or_default();
        let listening = self.kept.as_ref().and_then(|kept| kept.listening.as_ref());
        let mut fds = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        let mut places = [None; 1 + STREAMS];
        for (place, fd) in places.iter_mut().zip([self.control.poll()].into_iter().chain(streams)) {
            *place = fd.map(|fd| {
                fds.push(fd);
                fds.len() - 1
            });
        }
        let strangers = fds.len();
        fds.extend(listening.into_iter().flat_map(listening::Listening::poll));
        match poll(&mut fds, timeout.as_ref()) {
            // Interrupted, nothing is ready.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = |place: Option<usize>| place.map_or(PollFlags::empty(), |place| fds[place].revents());
        let [control, streams @ ..] = places;
        Ok(Ready {
            signal: !fds[0].revents().is_empty(),
            control: !ready(control).is_empty(),
            streams: streams.map(ready),
            listening: fds[strangers..].iter().any(|fd| !fd.revents().is_empty()),
        })
    }
}

fn timespec(wait: Duration) -> rustix::event::Timespec {
    rustix::event::Timespec {
        tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    }
}
