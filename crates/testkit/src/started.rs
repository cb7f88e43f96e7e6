//! A run of `acpd` that is watched while it goes on: line by line on stdout, everything on stderr at its end.
//!
//! Invariant: every wait is for an event and bounded; dropped, it takes its process with it.

use crate::lines::{Lines, Next, text_of};
use crate::process::{Exit, exit_of, suspend};
use crate::run_mark::RunMark;
use crate::scratch::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;

/// A run of `acpd` without input.
#[derive(Debug)]
pub struct Started {
    child: Child,
    stdout: Lines,
    stderr: Receiver<String>,
    mark: RunMark,
}

impl Scratch {
    /// Starts `acpd` without input.
    pub fn start(&self, args: &[&str]) -> Started {
        let mut command = self.command(crate::acpd());
        command.args(args);
        self.start_command(command)
    }

    /// Starts a command without input.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_command(&self, mut command: Command) -> Started {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("acpd starts");
        let stdout = Lines::of(child.stdout.take().expect("it is piped"));
        let stderr = text_of(child.stderr.take().expect("it is piped"));
        Started { child, stdout, stderr, mark: self.mark().clone() }
    }
}

impl Started {
    /// The next line of stdout; None at its end.
    ///
    /// # Panics
    /// When nothing comes.
    pub fn next_line(&mut self) -> Option<String> {
        match self.stdout.next(crate::PATIENCE) {
            Next::Line { bytes, .. } => Some(String::from_utf8(bytes).expect("acpd writes text")),
            Next::End => None,
            Next::Nothing => {
                self.mark.kill_all();
                panic!("nothing came; stderr: {:?}", self.stderr.recv());
            }
        }
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("it lives");
    }

    /// Stops it by SIGSTOP, and waits until all of it stands still.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn suspend(&self) {
        suspend(self.child.id());
    }

    /// Closes stdout under it and waits for its end: how it ended, and stderr.
    pub fn close_output(mut self) -> (Exit, String) {
        self.stdout = Lines::none();
        let (exit, _, stderr) = self.end();
        (exit, stderr)
    }

    /// Waits for its end: how it ended, the rest of stdout, and stderr.
    ///
    /// # Panics
    /// When it does not end.
    pub fn end(mut self) -> (Exit, String, String) {
        let mut rest = String::new();
        while let Some(line) = self.next_line() {
            rest.push_str(&line);
            rest.push('\n');
        }
        let Some(exit) = exit_of(&mut self.child, crate::PATIENCE) else {
            self.mark.kill_all();
            panic!("it did not end; stderr: {:?}", self.stderr.recv());
        };
        (exit, rest, self.stderr.recv_timeout(crate::PATIENCE).expect("the pipe ends with it"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // One that has ended is gone and reaped.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
