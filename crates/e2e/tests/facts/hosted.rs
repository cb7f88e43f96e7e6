//! A host in this process, real agents below it, and short ways to ask it.

use acpd_e2e::{PATIENCE, Scratch, acpd};
use acpd_eventlog::{EventLog, Options};
use acpd_host::{
    AgentHandle, AgentSpec, ClientRef, Creator, Graces, Host, HostFile, HostOptions, NewSession, Program,
    ReplyTo, SessionHandle, TaskScope, TerminalSettings, Timeouts,
};
use acpd_supervisor::{KeeperCommand, Supervisor};
use bytes::Bytes;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;

/// An entry for an agent.
pub(crate) fn entry(scratch: &Scratch, name: &str, command: impl AsRef<Path>, args: &[String]) -> AgentSpec {
    let (variable, value) = scratch.mark().variable();
    let program = Program {
        command: command.as_ref().into(),
        args: args.iter().map(Into::into).collect(),
        env: vec![(variable.into(), value.into())],
    };
    AgentSpec {
        timeouts: Timeouts {
            graces: Graces { stdin: Duration::from_millis(100), term: Duration::from_millis(300) },
            initialize: Some(PATIENCE),
            cancel: Some(PATIENCE),
            ..Timeouts::default()
        },
        ..AgentSpec::new(name.to_owned(), program)
    }
}

/// An entry for the example agent.
pub(crate) fn example(scratch: &Scratch, name: &str) -> AgentSpec {
    let state = scratch.path("agent").to_string_lossy().into_owned();
    entry(scratch, name, acpd(), &["example-agent".to_owned(), "--state-dir".to_owned(), state])
}

/// A host of these agents, on the state directory of the test.
pub(crate) async fn open(scratch: &Scratch, agents: impl IntoIterator<Item = AgentSpec>) -> Host {
    open_with(scratch, agents, Options::default()).await
}

/// The same with such a log.
pub(crate) async fn open_with(
    scratch: &Scratch,
    agents: impl IntoIterator<Item = AgentSpec>,
    options: Options,
) -> Host {
    let state = scratch.state();
    let host_file = HostFile::create(&state).expect("the state directory can be written");
    let log = EventLog::open(&state, options).expect("the log opens");
    let scope = TaskScope::default();
    let keeper = KeeperCommand { program: acpd(), args: vec!["keeper".into()] };
    let supervisor = Supervisor::new(keeper, host_file.id(), scope.clone());
    let agents = agents.into_iter().map(|spec| (spec.name.clone(), spec)).collect();
    let options = HostOptions {
        agents,
        finder: None,
        cwd: scratch.work(),
        terminal: TerminalSettings::default(),
        continuity: None,
    };
    Host::open(options, log, supervisor, scope, host_file, &state).await
}

/// Ends a host; nothing of it is left. Whoever still holds a process keeps it.
pub(crate) async fn close(host: Host) {
    host.clone().shutdown("test").await;
    tokio::time::timeout(PATIENCE, host.finished()).await.expect("everything ends");
}

pub(crate) fn creator(token: Option<&str>) -> Creator {
    Creator { client: "e2e".into(), token: token.map(Into::into), key: None }
}

/// The parameters of `session/new`.
pub(crate) fn setup(scratch: &Scratch) -> Option<Bytes> {
    Some(json!({"cwd": scratch.work(), "mcpServers": []}).to_string().into())
}

/// A new session, on a process that the host has or starts.
pub(crate) async fn session(host: &Host, scratch: &Scratch, agent: &str) -> SessionHandle {
    let process = host.connect(agent, None).await.expect("the agent starts");
    session_on(host, scratch, &process).await.session
}

pub(crate) async fn session_on(host: &Host, scratch: &Scratch, process: &AgentHandle) -> NewSession {
    host.new_session(process, setup(scratch), creator(None)).await.expect("the agent gives a session")
}

fn client() -> ClientRef {
    ClientRef { name: "e2e".into(), connection: "e2e-1".into() }
}

/// What a session answers to a request, later.
pub(crate) async fn ask(session: &SessionHandle, method: &str, params: Value) -> oneshot::Receiver<Value> {
    let mut params = params;
    params["sessionId"] = json!(session.id().as_str());
    let (send, answer) = oneshot::channel();
    let reply = ReplyTo::new(move |reply| {
        let body = match reply.body {
            Ok(body) => serde_json::from_slice(&body).expect("results are JSON"),
            Err(error) => json!({"error": error.to_string()}),
        };
        let _left = send.send(body);
    });
    let params = Some(params.to_string().into());
    session.request(method.to_owned(), params, client(), reply).await.expect("the session lives");
    answer
}

/// Begins a turn.
pub(crate) async fn prompt(session: &SessionHandle, text: &str) -> oneshot::Receiver<Value> {
    ask(session, "session/prompt", json!({"prompt": [{"type": "text", "text": text}]})).await
}

/// A turn to its end.
pub(crate) async fn turn(session: &SessionHandle, text: &str) -> Value {
    prompt(session, text).await.await.expect("it is answered")
}

/// Waits until something is so.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let found = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.unwrap_or_else(|_| panic!("it never came to this: {what}"))
}
