//! A raw ACP client of one program: as cheap as can be, so that what is measured is the program.
//!
//! Owner of the process. Invariants: no wait is without a bound; when a peer is dropped its process has been reaped,
//! by SIGKILL if it does not follow the end of its input; what goes wrong panics. It knows the example agent's way of
//! writing, where an answer has its id near its front and no method; it is no client for anything else. Of a program
//! that does not speak ACP it only reads the lines.

use super::now;
use acpd_testkit::{Exit, ReadTimeout, exit_of};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A program whose output has ended gets this long to exit: longer than a host's own graces.
const EXIT: Duration = Duration::from_secs(10);
/// One read: what a pipe holds.
const READ: usize = 64 * 1024;

/// A running program.
pub(super) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ReadTimeout<ChildStdout>>,
    /// The line that was read last, with its newline.
    line: Vec<u8>,
    next_id: u64,
}

impl Peer {
    pub(super) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stdout = child.stdout.take().expect("it is a pipe");
        let stdout = BufReader::with_capacity(READ, ReadTimeout(stdout));
        Self { stdin: child.stdin.take(), child, stdout, line: Vec::new(), next_id: 0 }
    }

    /// `initialize`.
    pub(super) fn initialize(&mut self) {
        self.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
    }

    /// `session/new`; its id as JSON text. What belongs to the start of a session has been read when it returns.
    pub(super) fn new_session(&mut self) -> String {
        let answer = self.request("session/new", &json!({"cwd": "/", "mcpServers": []}));
        let session = &answer["result"]["sessionId"];
        self.request("_example/ping", &json!({"sessionId": session}));
        session.to_string()
    }

    /// A request and its answer, which must be a result.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.timed_request(method, &params.to_string());
        let answer: Value = serde_json::from_slice(&self.line).expect("an answer is JSON");
        assert!(answer.get("result").is_some(), "it answered {method} with {answer}");
        answer
    }

    /// From writing a request to having its answer.
    pub(super) fn timed_request(&mut self, method: &str, params: &str) -> Duration {
        let id = self.next_id;
        self.next_id += 1;
        let mark = format!("\"id\":{id},");
        let begun = now();
        self.write(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
        ));
        loop {
            let line = self.next_line();
            if holds(line, mark.as_bytes()) && !holds(line, b"\"method\":") {
                return begun.elapsed();
            }
        }
    }

    pub(super) fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is a pipe");
        stdin.write_all(line.as_bytes()).expect("the program reads");
    }

    /// Reads what is there, at least one byte.
    pub(super) fn read(&mut self, space: &mut [u8]) -> usize {
        let count = self.stdout.read(space).expect("the program writes");
        assert!(count > 0, "it ended in the middle");
        count
    }

    /// Waits for a line.
    pub(super) fn next_line(&mut self) -> &[u8] {
        self.line.clear();
        let read = self.stdout.read_until(b'\n', &mut self.line).expect("the program writes");
        assert!(read > 0, "it ended in the middle");
        &self.line
    }

    /// Ends the program's input and waits for the good end that must follow; says when that was.
    pub(super) fn finish(mut self) -> Instant {
        self.stdin = None;
        std::io::copy(&mut self.stdout, &mut std::io::sink()).expect("the program closes its output");
        assert_eq!(exit_of(&mut self.child, EXIT), Some(Exit::Code(0)), "how it ended");
        now()
    }
}

impl Drop for Peer {
    /// After an error: no waiting for answers, but the host may still end its agent properly.
    fn drop(&mut self) {
        self.stdin = None;
        if exit_of(&mut self.child, EXIT).is_none() {
            // It may just have ended.
            let _ended = self.child.kill();
            let _reaped = self.child.wait();
        }
    }
}

fn holds(line: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(line, part).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Peer {
        let mut command = crate::run::command("sh");
        command.args(["-c", script]);
        Peer::start(command)
    }

    // issue 2, 8: the answer is told from what is said before it
    #[test]
    fn a_request_gets_its_own_answer() {
        let mut peer = shell(
            r#"read a; echo '{"jsonrpc":"2.0","method":"x","params":{"id":0,"a":0}}'
            echo '{"jsonrpc":"2.0","id":0,"result":{"late":true}}'; read end; exit 0"#,
        );
        assert_eq!(peer.request("y", &json!({}))["result"], json!({"late": true}));
        peer.finish();
    }

    // issue 2, 8: what is refused, or ends badly, is not measured
    #[test]
    #[should_panic(expected = "it answered y with")]
    fn an_error_is_no_answer() {
        shell(r#"read a; echo '{"jsonrpc":"2.0","id":0,"error":{"code":1}}'"#).request("y", &json!({}));
    }

    #[test]
    #[should_panic(expected = "how it ended")]
    fn a_bad_end_is_no_end() {
        shell("read end; exit 3").finish();
    }

    // issue 2, 8: it ends everything it started, also on error
    #[test]
    fn a_dropped_peer_is_gone() {
        let peer = shell("read end");
        let pid = rustix::process::Pid::from_child(&peer.child);
        drop(peer);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }
}
