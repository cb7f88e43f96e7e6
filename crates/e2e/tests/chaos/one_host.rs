//! One host in this process, and any number of clients on sockets to it.
//!
//! The front end of `acpd` that takes many clients has tests of its own; here it is only the host and its connections
//! that matter, so a client comes by a socket pair and says nothing but ACP.

use acpd_e2e::{Client, Scratch, acpd};
use acpd_eventlog::{EventLog, Options};
use acpd_gateway::{
    Allowance, Arrival, ConnectionIo, ConnectionOptions, Identity, LAST_EVENTS, outbox, serve,
};
use acpd_host::{
    AgentSpec, Graces, Host, HostFile, HostOptions, PermissionMode, Program, TaskScope, TerminalSettings,
    Timeouts,
};
use acpd_supervisor::{KeeperCommand, Supervisor};
use bytes::Bytes;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// More than a test has at once.
const CLIENTS: usize = 64;
/// The name of acpd's hidden subcommand.
const KEEPER: &str = "keeper";

/// An agent that is the example agent.
#[derive(Clone, Copy)]
pub(crate) struct Example {
    pub(crate) name: &'static str,
    pub(crate) without: &'static str,
    pub(crate) shared: bool,
    /// Permission requests go to people.
    pub(crate) asks: bool,
}

/// A host on a thread of its own.
pub(crate) struct OneHost {
    clients: Option<mpsc::Sender<(UnixStream, &'static str)>>,
    thread: Option<JoinHandle<()>>,
}

impl OneHost {
    pub(crate) fn open(scratch: &Scratch, agents: &[Example]) -> Self {
        let specs = agents.iter().map(|agent| (agent.name.to_owned(), spec(scratch, agent))).collect();
        let options = HostOptions {
            agents: specs,
            finder: None,
            cwd: scratch.work(),
            terminal: TerminalSettings::default(),
            continuity: None,
        };
        let state = scratch.state();
        let (sender, clients) = mpsc::channel(CLIENTS);
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(host(options, &state, clients));
        };
        Self { clients: Some(sender), thread: Some(std::thread::spawn(run)) }
    }

    /// A new client, of an agent.
    pub(crate) fn client(&self, scratch: &Scratch, agent: &'static str) -> Client {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let clients = self.clients.as_ref().expect("it is open");
        clients.blocking_send((theirs, agent)).expect("the host runs");
        Client::over(ours, scratch)
    }

    /// Shuts the host down; its clients may still read what there is for them.
    pub(crate) fn shut_down(&mut self) {
        drop(self.clients.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the host does not panic");
        }
    }
}

fn spec(scratch: &Scratch, agent: &Example) -> AgentSpec {
    let (name, value) = scratch.mark().variable();
    let mut args = vec!["example-agent".into()];
    if !agent.without.is_empty() {
        args.extend(["--without".into(), agent.without.into()]);
    }
    let program = Program { command: acpd().into(), args, env: vec![(name.into(), value.into())] };
    AgentSpec {
        timeouts: Timeouts {
            graces: Graces { stdin: Duration::from_millis(100), term: Duration::from_millis(300) },
            initialize: Some(acpd_e2e::PATIENCE),
            cancel: Some(acpd_e2e::PATIENCE),
            ..Timeouts::default()
        },
        share_process: agent.shared,
        permission_mode: match agent.asks {
            true => PermissionMode::Default,
            false => PermissionMode::BypassPermissions,
        },
        ..AgentSpec::new(agent.name.to_owned(), program)
    }
}

async fn host(
    options: HostOptions,
    state: &std::path::Path,
    mut clients: mpsc::Receiver<(UnixStream, &'static str)>,
) {
    let host_file = HostFile::create(state).expect("the state directory can be written");
    let log = EventLog::open(state, Options::default()).expect("the log opens");
    let scope = TaskScope::default();
    let keeper = KeeperCommand { program: acpd(), args: vec![KEEPER.into()] };
    let supervisor = Supervisor::new(keeper, host_file.id(), scope.clone());
    let host = Host::open(options, log, supervisor, scope, host_file, state).await;
    while let Some((socket, agent)) = clients.recv().await {
        host.scope().spawn("client", client(host.clone(), socket, agent));
    }
    host.clone().shutdown("test").await;
    host.finished().await;
}

/// Serves one client until it is gone.
async fn client(host: Host, socket: UnixStream, agent: &'static str) {
    socket.set_nonblocking(true).expect("a socket can be that");
    let socket = tokio::net::UnixStream::from_std(socket).expect("it is one");
    let (input, mut output) = socket.into_split();
    let (sender, arrivals) = mpsc::channel(64);
    let (outbox, mut pieces) = outbox();
    let gone = host.scope().token().child_token();
    let ended: CancellationToken = gone.clone();
    host.scope().spawn("read", async move {
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        let reading = async {
            while input.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
                line.pop_if(|last| *last == b'\n');
                let arrival = Arrival::Line(Bytes::from(std::mem::take(&mut line)));
                if sender.send(arrival).await.is_err() {
                    return;
                }
            }
        };
        ended.run_until_cancelled(reading).await;
        ended.cancel();
    });
    host.scope().spawn("write", async move {
        while let Some(piece) = pieces.recv().await {
            if output.write_all(&piece).await.is_err() {
                return;
            }
        }
    });
    let options = ConnectionOptions {
        identity: Identity::local(Allowance::UNLIMITED),
        agent: agent.to_owned(),
        transport: "e2e",
        ends_host: false,
        session_stop: false,
        fleet: None,
    };
    serve(host, options, ConnectionIo { arrivals, gone, outbox, last_events: LAST_EVENTS }).await;
}
