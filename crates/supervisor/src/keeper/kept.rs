//! The streams of a kept program, as its keeper handles them: stdin by frames, stdout as far as it was told, stderr always.
//!
//! A shell around the machine: it reads and writes what that decides. Not here: processes, and who speaks to the keeper.

use super::connection::Connection;
use super::frames::HEAD;
use super::listening::Listening;
use super::machine::Machine;
use super::output::{Impossible, Take};
use super::program::End;
use super::protocol::{
    Attached, Command, Consumed, Drained, Exited, FromKeeper, NotKept, Running, StderrLost,
};
use super::pty::Pty;
use super::start_frame::Pipes;
use super::{end_file, now};
use crate::ladder::Graces;
use crate::scratch;
use crate::stderr::StderrRecorder;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Streams of a program.
pub(super) const STREAMS: usize = 4;
/// Bytes of stderr, or of a pseudo-terminal, taken in one read.
const READ: usize = 64 * 1024;
/// After the program's end, at most this much is still taken from a pipe that never runs dry: more than any pipe
/// holds, so that nothing the program itself wrote is lost.
const AFTER_END: usize = 1024 * 1024;
/// How often the end is tried to be written where there was no room for it.
const AGAIN: Duration = Duration::from_secs(5);

pub(super) struct Kept {
    pub(super) machine: Machine,
    pub(super) listening: Option<Listening>,
    running: Running,
    graces: Graces,
    /// Those of the protocol that are spoken.
    versions: [u32; 2],
    /// None: closed.
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    /// Fills that pipe from a pseudo-terminal, if the program has one.
    pty: Option<Pty>,
    /// None: nothing more comes.
    stderr: Option<OwnedFd>,
    recorder: StderrRecorder,
    /// Lines of stderr that were not passed on.
    lost_lines: u64,
    exited: Option<Exited>,
    buffer: Vec<u8>,
    /// When the end is to be written, and for how long that is tried.
    end_due: Option<(Instant, Instant)>,
}

/// What became of the end of a program without a controller.
pub(super) enum Left {
    /// It is written, or there is no use in trying any more.
    Nothing,
    /// It is to be tried again.
    Everything,
}

impl Kept {
    /// With our ends of the streams, none of which blocks, as the start frame has them; `is_pty` says of which kind.
    pub(super) fn new(
        running: Running,
        graces: Graces,
        versions: [u32; 2],
        ends: Pipes,
        is_pty: bool,
    ) -> Self {
        let (stdin, stdout, stderr, pty) = match ends {
            [master, stdout, filled] if is_pty => (None, stdout, None, Some(Pty::new(master, filled))),
            [stdin, stdout, stderr] => (Some(stdin), stdout, Some(stderr), None),
        };
        Self {
            machine: Machine::new(),
            listening: None,
            running,
            graces,
            versions,
            stdin,
            stdout,
            pty,
            stderr,
            recorder: StderrRecorder::default(),
            lost_lines: 0,
            exited: None,
            buffer: vec![0; READ],
            end_due: None,
        }
    }

    /// What is to be waited for: stdin, stdout, stderr, and the pseudo-terminal.
    pub(super) fn poll(&self) -> [Option<PollFd<'_>>; STREAMS] {
        let writes = if self.machine.input.next().is_some() { PollFlags::OUT } else { PollFlags::empty() };
        let stdin = self.stdin.as_ref().map(|end| PollFd::new(end, writes));
        // With a controller stdout is consumed when it says so.
        let takes = self.machine.output.is_detached() && self.machine.output.next().is_some();
        let stdout = takes.then(|| PollFd::new(&self.stdout, PollFlags::IN));
        let stderr = self.stderr.as_ref().map(|end| PollFd::new(end, PollFlags::IN));
        [stdin, stdout, stderr, self.pty.as_ref().and_then(Pty::poll)]
    }

    /// When something is to be done, whatever happens.
    pub(super) fn due(&self) -> Option<Instant> {
        let end = self.end_due.map(|(due, _)| due);
        self.machine.due().into_iter().chain(end).min()
    }

    /// Does what a controller asks for and what is not the ladder's.
    pub(super) fn obey(
        &mut self,
        command: Command,
        cost: usize,
        control: &mut Connection,
    ) -> Result<(), Impossible> {
        match command {
            Command::Write { mark, bytes } => {
                self.machine.write(mark, bytes, cost + HEAD)?;
                self.write_stdin(control);
            }
            Command::Put(put) => self.machine.put(put, cost + HEAD)?,
            Command::Progress(progress) => {
                self.machine.progress(progress)?;
                self.consume();
                let position = self.machine.output.consumed();
                control.send(&FromKeeper::Consumed(Consumed { position }));
            }
            Command::Keep(keep) => {
                if self.machine.keep(keep.clone()) {
                    match Listening::open(&keep, self.versions) {
                        Ok(listening) => self.listening = Some(listening),
                        Err(error) => {
                            self.machine.not_kept();
                            control.send(&FromKeeper::NotKept(NotKept { why: error.to_string() }));
                        }
                    }
                }
            }
            Command::Resize(size) => self.pty.iter().for_each(|pty| pty.resize(size)),
            Command::Stop | Command::Kill | Command::Done | Command::Alive(_) | Command::Hello(_) => {}
        }
        self.tell_drained(control);
        Ok(())
    }

    /// Moves what the pseudo-terminal has to where stdout is read.
    pub(super) fn fill(&mut self) -> bool {
        self.pty.as_mut().is_some_and(|pty| pty.fill(&mut self.buffer))
    }

    /// Takes what the machine wants out of stdout, as far as it is there.
    pub(super) fn consume(&mut self) {
        while let Some(take) = self.machine.output.next() {
            if !self.take(take) {
                break;
            }
        }
    }

    /// Whether there may be more.
    fn take(&mut self, take: Take) -> bool {
        let output = &mut self.machine.output;
        let taken = match take {
            Take::Discard(bytes) => {
                scratch::discard(&self.stdout, bytes).inspect(|taken| output.discarded(*taken))
            }
            Take::Retain(bytes) => {
                rustix::io::read(&self.stdout, output.room(bytes)).inspect(|taken| output.retain(*taken))
            }
        };
        match taken {
            Ok(0) => output.over(),
            Ok(_) | Err(Errno::INTR) => return true,
            Err(Errno::AGAIN) => {}
            Err(_) => output.over(),
        }
        false
    }

    /// Writes what stdin takes.
    pub(super) fn write_stdin(&mut self, control: &mut Connection) {
        while let (Some(stdin), Some(bytes)) = (&self.stdin, self.machine.input.next()) {
            match rustix::io::write(stdin, bytes) {
                Ok(written) => self.machine.input.wrote(written),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return self.no_reader(control),
            }
        }
        if self.machine.input.is_to_close() {
            self.stdin = None;
        }
        self.tell_drained(control);
    }

    fn tell_drained(&mut self, control: &mut Connection) {
        if let Some(bytes) = self.machine.input.take_told() {
            control.send(&FromKeeper::Drained(Drained { bytes }));
        }
    }

    /// The program reads no more.
    pub(super) fn no_reader(&mut self, control: &mut Connection) {
        if self.stdin.take().is_some() {
            self.machine.input.no_reader();
            control.send(&FromKeeper::StdinClosed);
        }
    }

    /// The ladder has begun: stdin ends with what was accepted.
    pub(super) fn stopping(&mut self, control: &mut Connection) {
        self.machine.stopping();
        self.machine.input.close();
        self.write_stdin(control);
    }

    /// Takes what came on stderr; whether there may be more.
    pub(super) fn read_stderr(&mut self, control: &mut Connection) -> bool {
        let Some(stderr) = &self.stderr else { return false };
        match rustix::io::read(stderr, &mut self.buffer) {
            Ok(0) => self.stderr = None,
            Ok(read) => {
                let bytes = &self.buffer[..read];
                self.recorder.push(bytes);
                if self.lost_lines > 0 && !control.is_slow() {
                    control.send(&FromKeeper::StderrLost(StderrLost {
                        lines: std::mem::take(&mut self.lost_lines),
                    }));
                }
                if self.lost_lines > 0 || !control.send_stderr(bytes) {
                    self.lost_lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
                }
                return true;
            }
            Err(Errno::INTR) => return true,
            Err(Errno::AGAIN) => {}
            Err(_) => self.stderr = None,
        }
        false
    }

    /// The program is gone, with everything it left.
    pub(super) fn ended(&mut self, end: End, control: &mut Connection) {
        if self.exited.is_some() {
            return;
        }
        let mut left = AFTER_END / READ;
        while left > 0 && self.read_stderr(control) {
            left -= 1;
        }
        self.stderr = None;
        let End { status, leaked, rungs, oom_kills } = end;
        let exited = Exited { status, leaked, rungs, oom_kills, stderr: Some(self.recorder.excerpt()) };
        control.send(&FromKeeper::Exited(exited.clone()));
        self.exited = Some(exited);
    }

    /// Makes `control` the controller.
    pub(super) fn attach(&mut self, control: &mut Connection) {
        let detached = self.machine.attach(now());
        self.lost_lines = 0;
        self.end_due = None;
        let head = self.head(self.machine.lease(), detached);
        control.attach(&head, self.stdout.as_fd(), &self.machine.output);
    }

    /// Everything that the next daemon needs to know.
    fn head(&self, lease: u64, detached: Duration) -> Attached {
        let Machine { output, input, .. } = &self.machine;
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Attached {
            version: self.versions[1],
            running: self.running,
            lease,
            detached_ms: millis(detached),
            graces_ms: [self.graces.stdin, self.graces.term].map(millis),
            committed: output.consumed() - output.retained() as u64,
            consumed: output.consumed(),
            marks: self.machine.marks().clone(),
            undrained: input.undrained(),
            stdin_closed: input.is_closed(),
            exited: self.exited.clone(),
            is_pty: self.pty.is_some(),
        }
    }

    /// The program has ended, and no daemon is there. Its end is left for the next one, with all that is not settled.
    pub(super) fn leave(&mut self) -> Left {
        let mut left = AFTER_END;
        while let Some(take) = self.machine.output.next_of_the_rest().filter(|_| left > 0) {
            let before = self.machine.output.consumed();
            let is_filled = self.fill();
            if !self.take(take) && !is_filled {
                break;
            }
            left =
                left.saturating_sub(usize::try_from(self.machine.output.consumed() - before).unwrap_or(left));
        }
        let (Some(listening), Some(keep)) = (&self.listening, self.machine.kept()) else {
            return Left::Nothing;
        };
        let now = now();
        let (due, until) = *self.end_due.get_or_insert((now, now + Duration::from_millis(keep.keep_ms)));
        if now < due {
            return Left::Everything;
        }
        // As one that attached would be told.
        let head = self.head(self.machine.lease() + 1, self.machine.detached_for(now));
        match end_file::write(listening.directory(), &keep.name, &head, &self.machine.output) {
            Ok(()) => Left::Nothing,
            // There is no room, say. An attach still finds all of it here; if none comes, it is lost, and the next daemon
            // records what it can: that this one is gone.
            // Where the state directory was removed, no daemon comes.
            Err(error) if error.kind() != io::ErrorKind::NotFound && now < until => {
                self.end_due = Some(((now + AGAIN).min(until), until));
                Left::Everything
            }
            Err(_) => Left::Nothing,
        }
    }
}
