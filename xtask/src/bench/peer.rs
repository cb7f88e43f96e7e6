//! A raw ACP client of one program: as cheap as can be, so that what is measured is the program.
//!
//! Owner of the process. Invariants: no wait is without a bound; when a peer is dropped its process has been reaped,
//! by SIGKILL if it does not follow the end of its input. It knows the example agent's way of writing, where an answer
//! has its id near its front and no method; it is no client for anything else. Of a program that does not speak ACP it
//! only reads the lines.

use super::now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// A program that says nothing for so long is stuck.
const SILENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };
/// A program whose output has ended gets this long to exit: longer than a host's own graces.
const EXIT: Duration = Duration::from_secs(10);
/// One read: what a pipe holds.
const READ: usize = 64 * 1024;

/// What went wrong with a program.
#[derive(Debug, thiserror::Error)]
pub(super) enum PeerError {
    #[error("cannot start it")]
    Start {
        #[source]
        source: io::Error,
    },
    #[error("cannot speak to it")]
    Pipe {
        #[from]
        source: io::Error,
    },
    #[error("it says nothing any more")]
    Silent,
    #[error("it ended in the middle")]
    Ended,
    #[error("it did not end by itself")]
    Stuck,
    #[error("it ended with {status}")]
    Failed { status: ExitStatus },
    #[error("it answered {method} with {line}")]
    Refused { method: String, line: String },
    #[error("after {expected} lines the answer to the prompt was due, not {line}")]
    Miscounted { expected: u64, line: String },
    #[error("it should have said the samples of {what}, not {line}")]
    Unmeasured { what: &'static str, line: String },
}

/// A running program.
pub(super) struct Peer {
    /// None once it was reaped.
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Where a read puts what it gets. Kept, because to clear it costs this unoptimized program more (165 us were seen)
    /// than a program takes to answer.
    space: Vec<u8>,
    /// What was read and not used; all before `used` is gone.
    buffer: Vec<u8>,
    used: usize,
    next_id: u64,
}

impl Peer {
    /// Starts the program, whose command has pipes.
    pub(super) fn start(mut command: Command) -> Result<Self, PeerError> {
        let mut child = command.spawn().map_err(|source| PeerError::Start { source })?;
        let stdout = child.stdout.take().expect("the command has a pipe there");
        let stdin = child.stdin.take();
        let (space, buffer) = (vec![0; READ], Vec::with_capacity(READ));
        Ok(Self { child: Some(child), stdin, stdout, space, buffer, used: 0, next_id: 0 })
    }

    /// `initialize`.
    pub(super) fn initialize(&mut self) -> Result<(), PeerError> {
        let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
        self.request("initialize", &params).map(drop)
    }

    /// `session/new`; its id as JSON text. What belongs to the start of a session has been read when it returns.
    pub(super) fn new_session(&mut self) -> Result<String, PeerError> {
        let answer = self.request("session/new", &json!({"cwd": "/", "mcpServers": []}))?;
        let session = answer["result"]["sessionId"].clone();
        self.request("_example/ping", &json!({"sessionId": session}))?;
        Ok(session.to_string())
    }

    /// A request and its answer.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Value, PeerError> {
        self.timed_request(method, &params.to_string())?;
        let line = self.last_line();
        let refused = || PeerError::Refused {
            method: method.to_owned(),
            line: String::from_utf8_lossy(line).into_owned(),
        };
        let answer: Value = serde_json::from_slice(line).map_err(|_| refused())?;
        if answer.get("result").is_some() { Ok(answer) } else { Err(refused()) }
    }

    /// From writing a request to having its answer, which [`Self::last_line`] then is.
    pub(super) fn timed_request(&mut self, method: &str, params: &str) -> Result<Duration, PeerError> {
        let id = self.next_id;
        self.next_id += 1;
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n");
        let mark = format!("\"id\":{id},");
        let begun = now();
        self.write(line.as_bytes())?;
        loop {
            self.next_line()?;
            let line = self.last_line();
            if holds(line, mark.as_bytes()) && !holds(line, b"\"method\":") {
                return Ok(begun.elapsed());
            }
        }
    }

    /// Writes a request whose answer is not waited for.
    pub(super) fn write(&mut self, line: &[u8]) -> Result<(), PeerError> {
        self.stdin.as_mut().ok_or(PeerError::Ended)?.write_all(line)?;
        Ok(())
    }

    /// Reads what is there, at least one byte, into `space`; 0 at the end.
    pub(super) fn read(&mut self, space: &mut [u8]) -> Result<usize, PeerError> {
        self.await_output()?;
        Ok(self.stdout.read(space)?)
    }

    fn await_output(&self) -> Result<(), PeerError> {
        let mut readable = [PollFd::new(&self.stdout, PollFlags::IN)];
        match poll(&mut readable, Some(&SILENCE)) {
            Ok(0) => Err(PeerError::Silent),
            Ok(_) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// The line that was read last, without its newline.
    pub(super) fn last_line(&self) -> &[u8] {
        self.buffer[..self.used].strip_suffix(b"\n").unwrap_or_default()
    }

    /// Waits for a line, which [`Self::last_line`] then is.
    pub(super) fn next_line(&mut self) -> Result<(), PeerError> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let mut searched = 0;
        loop {
            if let Some(newline) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                self.used = searched + newline + 1;
                return Ok(());
            }
            searched = self.buffer.len();
            self.await_output()?;
            let read = self.stdout.read(&mut self.space)?;
            self.buffer.extend_from_slice(&self.space[..read]);
            if read == 0 {
                return Err(PeerError::Ended);
            }
        }
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Asks a program to end that does not end with its input.
    pub(super) fn terminate(self) -> Result<Instant, PeerError> {
        if let Some(child) = &self.child {
            let pid = rustix::process::Pid::from_child(child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).map_err(io::Error::from)?;
        }
        self.finish()
    }

    /// Ends the program's input, if it has any, and waits for the good end that must follow; says when that was.
    pub(super) fn finish(mut self) -> Result<Instant, PeerError> {
        self.stdin = None;
        let mut rest = vec![0; READ];
        while self.read(&mut rest)? > 0 {}
        match self.reap().ok_or(PeerError::Stuck)?? {
            status if status.success() => Ok(now()),
            status => Err(PeerError::Failed { status }),
        }
    }

    /// Reaps the process within a bound. None: it had to be killed.
    fn reap(&mut self) -> Option<io::Result<ExitStatus>> {
        let mut child = self.child.take()?;
        let pid = rustix::process::Pid::from_child(&child);
        let (sender, exited) = sync_channel(1);
        std::thread::spawn(move || sender.send(child.wait()));
        if let Ok(status) = exited.recv_timeout(EXIT) {
            return Some(status);
        }
        // Not reaped yet, so the number is still its own. Failing means that it just ended.
        let _ended = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        let _status = exited.recv();
        None
    }
}

impl Drop for Peer {
    /// After an error: no waiting for answers, but the host may still end its agent properly.
    fn drop(&mut self) {
        if self.stdin.take().is_none()
            && let Some(child) = &self.child
        {
            // It does not end with its input. Failing means that it has ended.
            let pid = rustix::process::Pid::from_child(child);
            let _ended = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _status = self.reap();
    }
}

fn holds(line: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(line, part).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child;
    use std::process::Stdio;

    fn shell(script: &str) -> Peer {
        let mut command = child::command("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Peer::start(command).expect("a shell starts")
    }

    // issue 2, 8: the answer is told from what is said before it
    #[test]
    fn a_request_gets_its_own_answer() {
        let mut peer = shell(
            r#"read a; read b; echo '{"jsonrpc":"2.0","method":"x","params":{"id":1,"a":0}}'
            echo '{"jsonrpc":"2.0","id":1,"result":{"late":true}}'; read end; exit 0"#,
        );
        peer.write(b"first\n").expect("it reads");
        peer.next_id = 1;
        let answer = peer.request("y", &json!({})).expect("an answer");
        assert_eq!(answer["result"], json!({"late": true}));
        peer.finish().expect("it ends with its input");
    }

    // issue 2, 8
    #[test]
    fn an_error_a_bad_end_and_a_failed_start_are_errors() {
        let mut peer = shell(r#"read a; echo '{"jsonrpc":"2.0","id":0,"error":{"code":1}}'; exit 3"#);
        let error = peer.request("y", &json!({})).expect_err("refused");
        assert!(matches!(&error, PeerError::Refused { method, .. } if method == "y"), "{error}");
        assert!(matches!(peer.request("y", &json!({})), Err(PeerError::Ended | PeerError::Pipe { .. })));
        let error = peer.finish().expect_err("code 3");
        assert!(matches!(error, PeerError::Failed { status } if status.code() == Some(3)), "{error}");
        let missing = child::command("no-such-program-here");
        let error = Peer::start(missing).err();
        assert!(matches!(error, Some(PeerError::Start { .. })));
    }

    // issue 2, 8: it ends everything it started, also on error
    #[test]
    fn a_dropped_peer_is_gone() {
        let peer = shell("read end");
        let pid = peer.child.as_ref().map(rustix::process::Pid::from_child).expect("it runs");
        drop(peer);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }
}
