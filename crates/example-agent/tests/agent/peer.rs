//! A client of one agent process, owned by one test.
//!
//! Invariant: the process is dead and reaped when the peer is dropped; every wait for a line is bounded.
//! Not an ACP client: it looks at JSON.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

/// No step of any test takes this long, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Peer {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    next_id: u64,
}

/// A prompt's updates and its answer.
pub(crate) struct Played {
    pub(crate) messages: Vec<Value>,
    pub(crate) answer: Value,
}

impl Played {
    pub(crate) fn updates(&self) -> Vec<Value> {
        let updates = self.messages.iter().filter(|message| message["method"] == "session/update");
        updates.map(|message| message["params"]["update"].clone()).collect()
    }

    pub(crate) fn text(&self) -> String {
        text_of(&self.updates(), "agent_message_chunk")
    }

    pub(crate) fn stop_reason(&self) -> &str {
        self.answer["result"]["stopReason"].as_str().unwrap_or("none")
    }
}

/// The texts of all chunks of one kind.
pub(crate) fn text_of(updates: &[Value], kind: &str) -> String {
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == kind);
    chunks.filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
}

impl Peer {
    #[expect(clippy::disallowed_methods, reason = "the test is the agent's host")]
    pub(crate) fn spawn(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_acpd-example-agent"))
            .args(arguments)
            .env("EXAMPLE_VARIABLE", "its value")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut stderr = child.stderr.take().expect("piped");
        let (sender, lines) = sync_channel(4_096);
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                let read = stdout.read_until(b'\n', &mut line);
                if read.is_ok_and(|length| length == 0) || sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stderr = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).expect("stderr is a pipe");
            bytes
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, stderr: Some(stderr), next_id: 1 }
    }

    /// An initialized agent that keeps nothing on disk.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut peer = Self::spawn(&[&["--no-state"], arguments].concat());
        peer.initialize();
        peer
    }

    /// An initialized agent with a state directory.
    pub(crate) fn start_in(state: &Path, arguments: &[&str]) -> Self {
        let state = state.to_str().expect("a temporary path is text");
        let mut peer = Self::spawn(&[&["--state-dir", state], arguments].concat());
        peer.initialize();
        peer
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let capabilities = json!({"session": {"configOptions": {"boolean": {}}}});
        self.result("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities}))
    }

    pub(crate) fn new_session(&mut self) -> String {
        let result = self.result("session/new", json!({"cwd": "/tmp", "mcpServers": []}));
        result["sessionId"].as_str().expect("a session id").to_owned()
    }

    pub(crate) fn write(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line.as_ref()).and_then(|()| stdin.write_all(b"\n")).expect("the agent reads");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(message.to_string());
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next line, whatever it is; `None` at the end.
    pub(crate) fn line(&mut self) -> Option<Vec<u8>> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("the agent is silent"),
        }
    }

    pub(crate) fn message(&mut self) -> Value {
        let line = self.line().expect("the agent speaks on");
        serde_json::from_slice(&line)
            .unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&line)))
    }

    /// The answer to `id` and every message before it.
    pub(crate) fn until_answer(&mut self, id: u64) -> Played {
        let mut messages = Vec::new();
        loop {
            let message = self.message();
            if message["id"] == id && message.get("method").is_none() {
                return Played { messages, answer: message };
            }
            messages.push(message);
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Played {
        let id = self.request(method, params);
        self.until_answer(id)
    }

    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).answer;
        answer.get("result").unwrap_or_else(|| panic!("{method} failed: {answer}")).clone()
    }

    pub(crate) fn error_code(&mut self, method: &str, params: Value) -> i64 {
        let answer = self.ask(method, params).answer;
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method} succeeded: {answer}"))
    }

    /// Sends a prompt and returns its request id.
    pub(crate) fn begin(&mut self, session: &str, text: &str) -> u64 {
        self.request("session/prompt", prompt(session, text))
    }

    pub(crate) fn play(&mut self, session: &str, text: &str) -> Played {
        let id = self.begin(session, text);
        self.until_answer(id)
    }

    /// Shows that the agent is alive and has read everything so far.
    pub(crate) fn ping(&mut self) -> Played {
        self.ask("_example/ping", json!({}))
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// How the agent ended, and its stderr.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("the agent is ours");
        let stderr = self.stderr.take().expect("taken once").join().expect("the reader does not panic");
        (status, String::from_utf8_lossy(&stderr).into_owned())
    }
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
