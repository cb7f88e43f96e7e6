//! A client on the pipes of a program that speaks ACP as an agent (acpd, or an agent itself), or on a socket.
//!
//! Invariants: every message is recorded, and checked against the schema; every wait is for a message and bounded;
//! a client that is dropped takes its program with it.
//! Not a client library: it sends what a test says, wrong things too.

use crate::lines::{Lines, Next, text_of};
use crate::message::Message;
#[cfg(feature = "schema")]
use crate::oracle::check_from_agent;
use crate::process::{Exit, exit_of, has_no_zombies};
use crate::run_mark::RunMark;
use crate::scratch::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// How long a test waits for something that must come. Generous: a busy machine is no defect, and only a test that fails takes so
/// long.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A request that was sent.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its id as it was written.
    id: String,
    /// How many messages had been received before.
    since: usize,
}

/// Where a client writes.
#[derive(Debug)]
enum Input {
    Pipe(ChildStdin),
    Socket(UnixStream),
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Self::Socket(socket) = self {
            // It is read elsewhere, so closing this end alone has no effect. One that is closed already is as good.
            let _closed = socket.shutdown(Shutdown::Write);
        }
    }
}

/// A client and its program.
#[derive(Debug)]
pub struct Client {
    /// None on a socket.
    child: Option<Child>,
    stdin: Option<Input>,
    lines: Lines,
    stderr: Receiver<String>,
    mark: RunMark,
    work: PathBuf,
    received: Vec<Message>,
    /// The method of each request, by its id as it was written.
    asked: HashMap<String, String>,
    next_id: u64,
    strict: bool,
    torn: Option<Vec<u8>>,
}

impl Client {
    pub(crate) fn start(mut command: Command, scratch: &Scratch) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let lines = Lines::of(child.stdout.take().expect("it is piped"));
        let stderr = text_of(child.stderr.take().expect("it is piped"));
        let stdin = child.stdin.take().map(Input::Pipe);
        Self::new(scratch, Some(child), stdin, lines, stderr)
    }

    /// A client on a socket.
    ///
    /// # Panics
    /// When the socket cannot be used.
    pub fn over(socket: UnixStream, scratch: &Scratch) -> Self {
        let lines = Lines::of(socket.try_clone().expect("a socket has many handles"));
        Self::new(scratch, None, Some(Input::Socket(socket)), lines, text_of(std::io::empty()))
    }

    fn new(
        scratch: &Scratch,
        child: Option<Child>,
        stdin: Option<Input>,
        lines: Lines,
        stderr: Receiver<String>,
    ) -> Self {
        Self {
            stdin,
            child,
            lines,
            stderr,
            mark: scratch.mark().clone(),
            work: scratch.work(),
            received: Vec::new(),
            asked: HashMap::new(),
            next_id: 1,
            strict: true,
            torn: None,
        }
    }

    /// Does not judge what comes by the schema: for agents that are told to break it.
    pub fn tolerant(&mut self) {
        self.strict = false;
    }

    /// The process id of the program.
    ///
    /// # Panics
    /// When there is none: on a socket.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it has a program").id()
    }

    fn program(&mut self) -> &mut Child {
        self.child.as_mut().expect("it has a program")
    }

    /// Everything that has come so far.
    pub fn received(&self) -> &[Message] {
        &self.received
    }

    /// What came after a request was sent.
    pub fn since(&self, asked: &Asked) -> &[Message] {
        &self.received[asked.since..]
    }

    /// Writes a line as it is; the newline is added.
    ///
    /// # Panics
    /// When the program does not take it.
    pub fn write_line(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        let line = [line.as_ref(), b"\n"].concat();
        let written = match stdin {
            Input::Pipe(pipe) => pipe.write_all(&line).and_then(|()| pipe.flush()),
            Input::Socket(socket) => socket.write_all(&line),
        };
        written.expect("the program reads its input");
    }

    /// Writes a request with an id of the test's own, in JSON.
    pub fn request_as(&mut self, id: &str, method: &str, params: &Value) -> Asked {
        self.asked.insert(id.to_owned(), method.to_owned());
        let asked = Asked { id: id.to_owned(), since: self.received.len() };
        let (method, id) = (json!(method), &asked.id);
        self.write_line(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#));
        asked
    }

    /// Writes a request.
    pub fn request(&mut self, method: &str, params: &Value) -> Asked {
        let id = self.next_id.to_string();
        self.next_id += 1;
        self.request_as(&id, method, params)
    }

    /// Writes a notification.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.write_line(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// The next message; None at the end of the program's output.
    ///
    /// # Panics
    /// When nothing comes, or something that is no message or breaks the schema.
    pub fn next_message(&mut self) -> Option<Message> {
        match self.lines.next(PATIENCE) {
            Next::Line { bytes, torn: true } => {
                self.torn = Some(bytes);
                None
            }
            Next::Line { bytes, torn: false } => {
                let message = match Message::read(bytes) {
                    Ok(message) => message,
                    Err(line) => self.give_up(&format!("this line is no message: {line}")),
                };
                if self.strict
                    && let Err(wrong) = self.judge(&message)
                {
                    self.give_up(&format!("{wrong}: {}", shortened(&message.raw)));
                }
                self.received.push(message.clone());
                Some(message)
            }
            Next::End => None,
            Next::Nothing => self.give_up("nothing came"),
        }
    }

    #[cfg(not(feature = "schema"))]
    #[expect(clippy::unused_self, reason = "it judges where there is a schema")]
    fn judge(&self, _message: &Message) -> Result<(), String> {
        Ok(())
    }

    #[cfg(feature = "schema")]
    fn judge(&self, message: &Message) -> Result<(), String> {
        let answered = message.is_answer().then(|| raw_id(&message.raw)).flatten();
        let asked = answered.and_then(|id| self.asked.get(&id));
        check_from_agent(&message.json, asked.map(String::as_str))
    }

    /// Reads until a message is what is looked for.
    ///
    /// # Panics
    /// When the output ends before.
    pub fn until(&mut self, what: &str, found: impl Fn(&Message) -> bool) -> Message {
        loop {
            match self.next_message() {
                Some(message) if found(&message) => return message,
                Some(_) => {}
                None => self.give_up(&format!("the output ended before {what}")),
            }
        }
    }

    /// The answer to a request, which may have come already; exactly one may come.
    pub fn answer(&mut self, asked: &Asked) -> Message {
        let is_it = |message: &Message| {
            message.is_answer() && raw_id(&message.raw).as_deref() == Some(asked.id.as_str())
        };
        if let Some(message) = self.received[asked.since..].iter().find(|message| is_it(message)) {
            return message.clone();
        }
        self.until(&format!("the answer to {}", asked.id), is_it)
    }

    /// The result of a request.
    ///
    /// # Panics
    /// When it is answered with an error.
    pub fn result(&mut self, asked: &Asked) -> Value {
        let answer = self.answer(asked);
        match answer.json.get("result") {
            Some(result) => result.clone(),
            None => self.give_up(&format!("a result was expected: {}", answer.raw)),
        }
    }

    /// The error that answers a request.
    ///
    /// # Panics
    /// When it is answered with a result.
    pub fn error(&mut self, asked: &Asked) -> Value {
        let answer = self.answer(asked);
        match answer.json.get("error") {
            Some(error) => error.clone(),
            None => self.give_up(&format!("an error was expected: {}", answer.raw)),
        }
    }

    /// Sends a request and waits for its result.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let asked = self.request(method, params);
        self.result(&asked)
    }

    /// Sends a request and waits for the error that answers it.
    pub fn refused(&mut self, method: &str, params: &Value) -> Value {
        let asked = self.request(method, params);
        self.error(&asked)
    }

    /// Initializes as a client that understands everything.
    pub fn initialize(&mut self) -> Value {
        self.call("initialize", &initialize_params())
    }

    /// Creates a session in the scratch's working directory.
    pub fn new_session(&mut self) -> String {
        let result = self.call("session/new", &json!({"cwd": self.work, "mcpServers": []}));
        result["sessionId"].as_str().expect("a session has an id").to_owned()
    }

    /// Prompts with text, without waiting.
    pub fn prompt(&mut self, session: &str, text: &str) -> Asked {
        self.request("session/prompt", &prompt_params(session, text))
    }

    /// Prompts and waits for the stop reason.
    pub fn turn(&mut self, session: &str, text: &str) -> String {
        let asked = self.prompt(session, text);
        let result = self.result(&asked);
        result["stopReason"].as_str().expect("a turn has a stop reason").to_owned()
    }

    /// Waits for the first chunk of text that contains `text`.
    pub fn until_text(&mut self, text: &str) -> Message {
        self.until(&format!("the text {text:?}"), |message| message.text().is_some_and(|t| t.contains(text)))
    }

    /// Waits until a chunk of text contains `text`, if none does that has come already.
    pub fn until_said(&mut self, text: &str) {
        let says = |message: &Message| message.text().is_some_and(|said| said.contains(text));
        if !self.received().iter().any(says) {
            self.until_text(text);
        }
    }

    /// The text of all chunks so far of one session since a request.
    pub fn text_since(&self, asked: &Asked, session: &str) -> String {
        let own = self.since(asked).iter().filter(|message| message.session() == Some(session));
        own.filter_map(Message::text).collect()
    }

    /// Waits for the program's end without reading what it still says. None when it does not end in time.
    pub fn exit_unread(&mut self, within: Duration) -> Option<Exit> {
        exit_of(self.program(), within)
    }

    /// Closes the client's end of the program's output, once a message that is on its way was read.
    pub fn close_output(&mut self) {
        self.lines = Lines::none();
    }

    /// Closes the program's input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal to the program.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("the program lives");
    }

    /// Reads to the end of the output.
    pub fn read_to_end(&mut self) {
        while self.next_message().is_some() {}
    }

    /// Waits for the program's end: how it ended, and what it wrote to stderr.
    ///
    /// # Panics
    /// When it does not end, or a process of the test outlives it.
    pub fn ended(&mut self) -> (Exit, String) {
        self.read_to_end();
        let Some(exit) = exit_of(self.program(), PATIENCE) else { self.give_up("it did not end") };
        if let Err(living) = self.mark.only_left(&[]) {
            self.give_up(&format!("processes outlived it: {living:#?}"));
        }
        let stderr = self.stderr.recv_timeout(PATIENCE).expect("the pipe ends with its writers");
        (exit, stderr)
    }

    /// Closes the input and expects an end in good order: exit code 0, nothing left.
    ///
    /// # Panics
    /// When it is otherwise.
    pub fn finish(&mut self) {
        has_no_zombies(self.pid());
        self.close_input();
        self.expect_good_end();
    }

    /// Expects an end in good order: exit code 0, nothing left.
    ///
    /// # Panics
    /// When it is otherwise.
    pub fn expect_good_end(&mut self) {
        let (exit, stderr) = self.ended();
        assert_eq!((exit, self.torn.as_ref()), (Exit::Code(0), None), "stderr: {stderr}");
    }

    /// The notifications of the end of sessions, so far.
    pub fn ends(&self) -> Vec<&Message> {
        self.received.iter().filter(|m| m.method() == Some("_sandboxagent/session/ended")).collect()
    }

    /// Waits until nothing of this test lives but the program itself, and it has no zombies.
    ///
    /// # Panics
    /// When something else lives.
    pub fn is_alone(&mut self) {
        if let Err(living) = self.mark.only_left(&[self.pid()]) {
            self.give_up(&format!("processes were left: {living:#?}"));
        }
        has_no_zombies(self.pid());
    }

    /// Waits until nothing of this test lives but the program itself, its keepers, and what has `part` in its command line.
    ///
    /// # Panics
    /// When something else lives.
    pub fn is_alone_but_for(&mut self, part: &str) {
        let spared: Vec<u32> =
            ["keeper", part].iter().flat_map(|part| self.mark.running(part)).map(|m| m.pid).collect();
        let spared: Vec<u32> = spared.into_iter().chain([self.pid()]).collect();
        if let Err(living) = self.mark.only_left(&spared) {
            self.give_up(&format!("processes were left: {living:#?}"));
        }
    }

    fn give_up(&mut self, why: &str) -> ! {
        let last: Vec<String> = self.received.iter().rev().take(8).rev().map(|m| shortened(&m.raw)).collect();
        let mark = &self.mark;
        let living = mark.processes();
        mark.kill_all();
        let stderr = self.stderr.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        panic!("{why}\nlast messages: {last:#?}\nlived: {living:#?}\nstderr: {stderr}");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // A test that saw the end has reaped it already; any other does not care how it ends.
            let _gone = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// `initialize` of a client that understands all that is optional.
pub(crate) fn initialize_params() -> Value {
    json!({
        "protocolVersion": 1,
        "clientCapabilities": {"session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}}},
        "clientInfo": {"name": "e2e", "version": "1"},
    })
}

/// `session/prompt` with one block of text.
fn prompt_params(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// The id of a message as it was written.
fn raw_id(line: &str) -> Option<String> {
    let members: HashMap<String, Box<serde_json::value::RawValue>> = serde_json::from_str(line).ok()?;
    members.get("id").map(|id| id.get().to_owned())
}

fn shortened(line: &str) -> String {
    line.chars().take(2_000).collect()
}
