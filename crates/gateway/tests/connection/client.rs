//! A host of this process on a directory of its own, and clients of its connections.

use acpd_eventlog::{EventLog, Options};
use acpd_gateway::{
    Allowance, Arrival, ConnectionIo, ConnectionOptions, Identity, LAST_EVENTS, outbox, serve,
};
use acpd_host::{
    AgentSpec, Graces, Host, HostFile, HostOptions, Program, TaskScope, TerminalSettings, Timeouts,
};
use acpd_supervisor::{KeeperCommand, Supervisor};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The binary of the same build, for its keeper and its agent.
fn acpd() -> PathBuf {
    let test = std::env::current_exe().expect("a process knows its program");
    let deps = test.ancestors().find(|path| path.ends_with("deps")).expect("tests are in deps");
    let binary = deps.with_file_name("acpd");
    assert!(binary.is_file(), "{} is missing: run `cargo build -p acpd` first", binary.display());
    binary
}

/// A host with the example agent.
pub(crate) struct Hosted {
    host: Host,
    scope: TaskScope,
    dir: tempfile::TempDir,
}

impl Hosted {
    pub(crate) async fn open() -> Self {
        let dir = tempfile::TempDir::new().expect("a directory");
        let state = dir.path().join("state");
        std::fs::create_dir(&state).expect("a directory");
        let host_file = HostFile::create(&state).expect("the state directory can be written");
        let log = EventLog::open(&state, Options::default()).expect("the log opens");
        let scope = TaskScope::default();
        let keeper = KeeperCommand { program: acpd(), args: vec!["keeper".into()] };
        let supervisor = Supervisor::new(keeper, host_file.id(), scope.clone());
        let agent = example(dir.path().join("agent"));
        let agents = BTreeMap::from([(agent.name.clone(), agent)]);
        let cwd = dir.path().to_owned();
        let options = HostOptions {
            agents,
            finder: None,
            cwd,
            terminal: TerminalSettings::default(),
            continuity: None,
        };
        let host = Host::open(options, log, supervisor, scope.clone(), host_file, &state).await;
        Self { host, scope, dir }
    }

    /// A client that has said nothing yet.
    pub(crate) fn connect(&self) -> Client {
        self.connect_with(false, LAST_EVENTS)
    }

    /// A client that has said nothing yet, and for which alone the host lives; at the end it is written to so long.
    pub(crate) fn connect_only(&self, last_events: Duration) -> Client {
        self.connect_with(true, last_events)
    }

    fn connect_with(&self, ends_host: bool, last_events: Duration) -> Client {
        let (lines, arrivals) = mpsc::channel(16);
        let (outbox, written) = outbox();
        let options = ConnectionOptions {
            identity: Identity::local(Allowance::UNLIMITED),
            agent: "example".to_owned(),
            transport: "test",
            ends_host,
            session_stop: false,
            fleet: None,
        };
        let io = ConnectionIo { arrivals, gone: CancellationToken::new(), outbox, last_events };
        let serving = self.scope.spawn("connection", serve(self.host.clone(), options, io));
        Client { lines: Lines(lines), written, read: VecDeque::new(), passed: Vec::new(), asked: 0, serving }
    }

    pub(crate) async fn initialized(&self) -> Client {
        let mut client = self.connect();
        let answer = client.call("initialize", json!({"protocolVersion": 1})).await;
        assert!(answer["result"].is_object(), "{answer}");
        client
    }

    /// The params of `session/new`.
    pub(crate) fn setup(&self) -> Value {
        json!({"cwd": self.dir.path(), "mcpServers": []})
    }

    /// The params of `session/load`.
    pub(crate) fn of(&self, session: &str) -> Value {
        json!({"sessionId": session, "cwd": self.dir.path(), "mcpServers": []})
    }

    /// Ends the host once these clients have left; nothing of it is left.
    pub(crate) async fn close(self, clients: impl IntoIterator<Item = Client>) {
        let Self { host, scope, dir } = self;
        drop(scope);
        for client in clients {
            client.leave().await;
        }
        host.clone().shutdown("test").await;
        tokio::time::timeout(PATIENCE, host.finished()).await.expect("everything ends");
        drop(dir);
    }
}

fn example(state: PathBuf) -> AgentSpec {
    let state = state.to_string_lossy().into_owned();
    let args = ["example-agent", "--state-dir", &state].map(Into::into).into();
    let program = Program { command: acpd().into(), args, env: Vec::new() };
    AgentSpec {
        timeouts: Timeouts {
            graces: Graces { stdin: Duration::from_millis(100), term: Duration::from_millis(300) },
            initialize: Some(PATIENCE),
            cancel: Some(PATIENCE),
            ..Timeouts::default()
        },
        line_limit: 1 << 20,
        ..AgentSpec::new("example".to_owned(), program)
    }
}

/// Where a client's lines go.
#[derive(Clone)]
pub(crate) struct Lines(mpsc::Sender<Arrival>);

impl Lines {
    pub(crate) async fn send(&self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    pub(crate) async fn send_text(&self, line: &str) {
        let line = Bytes::from(line.to_owned());
        self.0.send(Arrival::Line(line)).await.expect("the connection reads");
    }
}

/// The answer to a request, or a message of acpd's own.
type Message = Value;

/// One client.
pub(crate) struct Client {
    lines: Lines,
    written: mpsc::Receiver<Bytes>,
    read: VecDeque<Message>,
    /// What came while something else was waited for.
    passed: Vec<Message>,
    asked: u64,
    serving: JoinHandle<Option<()>>,
}

/// The params of a prompt.
pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

impl Client {
    pub(crate) fn lines(&self) -> Lines {
        self.lines.clone()
    }

    /// Sends a request; gives its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params});
        self.lines.send(&request).await;
        self.asked
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        self.lines.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    pub(crate) async fn respond(&self, id: &Value, result: &Value) {
        self.lines.send(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Message {
        self.next_if_any().await.expect("the connection is open")
    }

    async fn next_if_any(&mut self) -> Option<Message> {
        while self.read.is_empty() {
            let lines =
                tokio::time::timeout(PATIENCE, self.written.recv()).await.expect("something comes")?;
            let lines = std::str::from_utf8(&lines).expect("text").lines().map(str::to_owned);
            self.read.extend(lines.map(|line| serde_json::from_str::<Value>(&line).expect("JSON")));
        }
        self.read.pop_front()
    }

    async fn find(&mut self, is_it: impl Fn(&Message) -> bool) -> Message {
        if let Some(at) = self.passed.iter().position(&is_it) {
            return self.passed.remove(at);
        }
        loop {
            let message = self.next().await;
            if is_it(&message) {
                return message;
            }
            self.passed.push(message);
        }
    }

    /// The answer to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> Message {
        self.find(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// The next message of this method.
    pub(crate) async fn until(&mut self, method: &str) -> Message {
        self.find(|message| message["method"] == method).await
    }

    /// The next update of this kind.
    pub(crate) async fn until_update(&mut self, kind: &str) -> Message {
        self.find(|message| message["params"]["update"]["sessionUpdate"] == kind).await
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Message {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// A new session.
    pub(crate) async fn session(&mut self, hosted: &Hosted) -> String {
        let created = self.call("session/new", hosted.setup()).await;
        created["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> Message {
        self.call("session/prompt", prompt(session, text)).await
    }

    /// Says nothing more, reads nothing until the connection has ended, and then all that there still is.
    pub(crate) async fn read_late(mut self) -> Vec<Message> {
        let (sender, _) = mpsc::channel(1);
        drop(std::mem::replace(&mut self.lines, Lines(sender)));
        let ended = tokio::time::timeout(PATIENCE, &mut self.serving).await.expect("it ends");
        assert_eq!(ended.expect("it did not panic"), Some(()));
        let mut messages = std::mem::take(&mut self.passed);
        while let Some(message) = self.next_if_any().await {
            messages.push(message);
        }
        messages
    }

    /// Hangs up, and waits until the connection has ended.
    pub(crate) async fn leave(self) {
        let Self { lines, written, serving, .. } = self;
        drop((lines, written));
        let ended = tokio::time::timeout(PATIENCE, serving).await.expect("it ends");
        assert_eq!(ended.expect("it did not panic"), Some(()));
    }
}
