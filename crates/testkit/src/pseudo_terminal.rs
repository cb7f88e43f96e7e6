//! `acpd` on a pseudo-terminal: what it shows there, keys that are pressed, and the mode of the terminal.
//!
//! Owned by one test. Invariant: waits for what is shown or for the end, with a bound. It is no process's controlling
//! terminal: keys reach the program as keys, never as signals.

use crate::{Deadline, PATIENCE, Scratch, acpd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Termios, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// A terminal that no program uses yet.
pub struct PseudoTerminal {
    /// The person's side.
    person: OwnedFd,
    /// The program's side; the test keeps it to look at the mode, also when the program is gone.
    program: OwnedFd,
    /// What the program is told of it.
    term: &'static str,
}

impl Default for PseudoTerminal {
    fn default() -> Self {
        Self::new()
    }
}

impl PseudoTerminal {
    /// One of 80 columns and 24 rows.
    ///
    /// # Panics
    /// When the system has none.
    pub fn new() -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let person = person.expect("a pseudo-terminal");
        grantpt(&person).expect("it is ours");
        unlockpt(&person).expect("it is ours");
        let name = ptsname(&person, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let program = open(name, flags, Mode::empty()).expect("its other side opens");
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&program, size).expect("it has a size");
        Self { person, program, term: "xterm" }
    }

    /// One on which nothing that was written can be changed.
    #[must_use]
    pub fn dumb(self) -> Self {
        Self { term: "dumb", ..self }
    }

    /// One of so many columns.
    ///
    /// # Panics
    /// When it cannot be.
    #[must_use]
    pub fn with_columns(self, columns: u16) -> Self {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.program, size).expect("it has a size");
        self
    }

    /// Presses keys.
    ///
    /// # Panics
    /// When the terminal does not take them.
    pub fn press(&self, keys: &str) {
        assert_eq!(rustix::io::write(&self.person, keys.as_bytes()), Ok(keys.len()));
    }

    /// The terminal's mode.
    pub fn mode(&self) -> Termios {
        tcgetattr(&self.program).expect("it is a terminal")
    }

    /// Runs `acpd run` on it with these arguments.
    pub fn run(self, scratch: &Scratch, args: &[&str]) -> OnTerminal {
        self.start(scratch, &[&["run"], args].concat())
    }

    /// Runs `acpd` on it with these arguments, and the configuration and state directory of the scratch.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(self, scratch: &Scratch, args: &[&str]) -> OnTerminal {
        let side = || Stdio::from(self.program.try_clone().expect("a descriptor"));
        let mut command = scratch.command(acpd());
        // A prompt is behind the flags, also one that begins with a dash.
        let named = if matches!(args.first(), Some(&("sessions" | "agents"))) { 2 } else { 1 };
        let (subcommand, rest) = args.split_at(named);
        command
            .args(subcommand)
            .arg("--state-dir")
            .arg(scratch.state())
            .arg("--config")
            .arg(scratch.config_file());
        command.args(rest).env("TERM", self.term).stdin(side()).stdout(side()).stderr(side());
        // As a shell would: what stops it must not stop the test.
        command.process_group(0);
        // Before it starts: where the machine is busy, it has changed the mode by the time that its start is reported here.
        let before = self.mode();
        let child = command.spawn().expect("acpd starts");
        OnTerminal { terminal: self, child, before, shown: Vec::new(), seen: 0 }
    }
}

/// `acpd` on a terminal.
pub struct OnTerminal {
    terminal: PseudoTerminal,
    child: Child,
    before: Termios,
    shown: Vec<u8>,
    /// How much of it was waited for.
    seen: usize,
}

impl OnTerminal {
    /// Presses keys.
    pub fn press(&self, keys: &str) {
        self.terminal.press(keys);
    }

    /// Makes the window so large; the program is told, as a terminal would.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.terminal.program, size).expect("it has a size");
        // It is no process's controlling terminal, so the system sends no signal.
        self.signal(Signal::WINCH);
    }

    /// Sends the program a signal.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn signal(&self, signal: Signal) {
        kill_process(pid_of(&self.child), signal).expect("it lives");
    }

    /// Whether keys come one by one, without being shown.
    pub fn is_asking(&self) -> bool {
        !self.terminal.mode().local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Sets the terminal's mode to what it was, as a shell does when a program stops.
    pub fn give_back(&self) {
        tcsetattr(&self.terminal.program, OptionalActions::Now, &self.before).expect("it is a terminal");
    }

    /// Waits until it is stopped, as by Ctrl-Z. The terminal is as it was, or the test fails.
    pub fn wait_until_stopped(&self) {
        let (pid, (sender, stopped)) = (pid_of(&self.child), sync_channel(1));
        // There is nothing to poll for it. When it does not come, the child is killed, and that ends the wait.
        std::thread::spawn(move || sender.send(waitpid(Some(pid), WaitOptions::UNTRACED)));
        let status = stopped.recv_timeout(PATIENCE).expect("it stops").expect("it is our child");
        assert!(status.is_some_and(|(_, status)| status.stopped()), "{status:?}");
        assert_eq!(
            format!("{:?}", self.before),
            format!("{:?}", self.terminal.mode()),
            "the terminal's mode"
        );
    }

    /// Waits until this is shown, after what was waited for before.
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Deadline::after(PATIENCE);
        loop {
            let unseen = &self.shown[self.seen..];
            if let Some(at) = unseen.windows(text.len()).position(|part| part == text.as_bytes()) {
                self.seen += at + text.len();
                return;
            }
            if poll_in([&self.terminal.person], deadline) == [false] {
                panic!("{text:?} did not come: {:?}", String::from_utf8_lossy(&self.shown));
            }
            self.take();
        }
    }

    /// Waits for the end; gives what was shown and how it ended. The terminal is as it was, or the test fails.
    pub fn end(mut self) -> (String, ExitStatus) {
        let exit = pidfd_open(pid_of(&self.child), PidfdFlags::empty()).expect("it is our child");
        let deadline = Deadline::after(PATIENCE);
        loop {
            match poll_in([&self.terminal.person, &exit], deadline) {
                [true, _] => self.take(),
                [_, true] => break,
                _ => panic!("it did not end: {:?}", String::from_utf8_lossy(&self.shown)),
            }
        }
        let status = self.child.wait().expect("it is our child");
        // What it wrote just before its end.
        while poll_in([&self.terminal.person], Deadline::after(Duration::ZERO)) == [true] {
            self.take();
        }
        let (before, after) = (&self.before, self.terminal.mode());
        assert_eq!(format!("{before:?}"), format!("{after:?}"), "the terminal's mode");
        (String::from_utf8(std::mem::take(&mut self.shown)).expect("text"), status)
    }

    /// The person closes the window; gives how the program ended.
    pub fn close_window(mut self) -> ExitStatus {
        let exit = pidfd_open(pid_of(&self.child), PidfdFlags::empty()).expect("it is our child");
        // Its last descriptor goes; another takes its place until this is dropped.
        self.terminal.person = exit.try_clone().expect("a descriptor");
        assert_eq!(poll_in([&exit], Deadline::after(PATIENCE)), [true], "it did not end");
        self.child.wait().expect("it is our child")
    }

    fn take(&mut self) {
        let mut bytes = [0; 4096];
        let count = rustix::io::read(&self.terminal.person, &mut bytes).expect("the other side is open");
        self.shown.extend(&bytes[..count]);
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // Both fail for one that has ended, and that is well.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn pid_of(child: &Child) -> Pid {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("children have ids")
}

/// Waits until one of them can be read; says which can.
fn poll_in<const N: usize>(fds: [&OwnedFd; N], deadline: Deadline) -> [bool; N] {
    let left = deadline.left();
    let left = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    };
    let mut fds = fds.map(|fd| PollFd::new(fd, PollFlags::IN));
    poll(&mut fds, Some(&left)).expect("it can be waited for");
    fds.map(|fd| !fd.revents().is_empty())
}
