//! Terminals of a host of their own, with a look at what is left of them.

#![allow(dead_code, reason = "each test program uses its own part")]

#[path = "../../../supervisor/tests/support/processes.rs"]
mod processes;

use acpd_supervisor::{KeeperCommand, Supervisor, TaskScope};
use acpd_terminal::{
    CreateError, TerminalEvent, TerminalHandle, TerminalId, TerminalReport, TerminalSettings,
    TerminalSnapshot, TerminalSpec, Terminals,
};
use processes::processes_with;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub(crate) const OWNER: &str = "session-1";

pub(crate) const BRIEF: Duration = Duration::from_millis(300);

/// Ignores SIGTERM, and says so when it does.
pub(crate) const STUBBORN: &str = "trap '' TERM HUP INT; echo ready; while :; do sleep 0.05; done";

/// Says `ready`, then waits for SIGTERM and acts on it. The shell itself would say what became of its `sleep`.
pub(crate) fn upon_sigterm(action: &str) -> String {
    format!("exec 2>/dev/null; trap '{action}' TERM; echo ready; while :; do sleep 0.02; done")
}

pub(crate) struct Bench {
    pub(crate) terminals: Terminals,
    scope: TaskScope,
    host: String,
}

impl Bench {
    /// One that gives a command the time to act on SIGTERM, on a busy machine too.
    pub(crate) fn new() -> Self {
        Self::with_grace(Duration::from_secs(600))
    }

    /// One for commands that have to be killed.
    pub(crate) fn brief() -> Self {
        Self::with_grace(BRIEF)
    }

    fn with_grace(graceful_shutdown_timeout: Duration) -> Self {
        Self::with(TerminalSettings { graceful_shutdown_timeout, ..TerminalSettings::default() })
    }

    pub(crate) fn with(settings: TerminalSettings) -> Self {
        let host = uuid::Uuid::new_v4().to_string();
        let scope = TaskScope::default();
        let keeper =
            KeeperCommand { program: env!("CARGO_BIN_EXE_acpd-terminal-keeper").into(), args: Vec::new() };
        let supervisor = Supervisor::new(keeper, &host, scope.clone());
        let inherited = std::env::vars_os().chain([("ACPD_SECRET".into(), "secret".into())]);
        let terminals = Terminals::new(supervisor, scope.clone(), inherited, settings);
        Self { terminals, scope, host }
    }

    pub(crate) async fn create(&self, spec: TerminalSpec) -> Result<TerminalHandle, CreateError> {
        let id = self.terminals.create(OWNER, spec, None).await?;
        Ok(self.get(&id))
    }

    pub(crate) async fn sh(&self, script: &str) -> TerminalHandle {
        self.create(shell(script)).await.expect("sh starts")
    }

    /// A shell with a feed, of which everything up to `until` was taken.
    pub(crate) async fn told(&self, script: &str, until: &str) -> (TerminalHandle, Feed) {
        self.told_by(shell(script), until).await
    }

    pub(crate) async fn told_by(&self, spec: TerminalSpec, until: &str) -> (TerminalHandle, Feed) {
        let (sender, receiver) = mpsc::channel(64);
        let id = self.terminals.create(OWNER, spec, Some(sender)).await.expect("sh starts");
        let mut feed = Feed { receiver, text: String::new() };
        feed.until(until).await;
        (self.get(&id), feed)
    }

    pub(crate) fn get(&self, id: &TerminalId) -> TerminalHandle {
        self.terminals.get(OWNER, id).expect("it was just created")
    }

    /// Ids of living processes that carry our mark.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let mark = format!("ACPD_PROCESS={}.", self.host);
        processes_with(mark.as_bytes())
    }

    /// Ends everything, waits for the tasks, then looks: nothing may be left.
    pub(crate) async fn nothing_left(self) {
        self.scope.token().cancel();
        self.nothing_left_alone().await;
    }

    /// The same, without asking for an end: it has to be enough that nobody holds anything any more.
    pub(crate) async fn nothing_left_alone(self) {
        let Self { terminals, scope, host } = self;
        drop(terminals);
        let ended = tokio::time::timeout(Duration::from_secs(60), scope.finished()).await;
        ended.expect("every task ends");
        let mark = format!("{host}.");
        for name in ["ACPD_PROCESS=", "ACPD_KEEPER="] {
            assert_eq!(processes_with(format!("{name}{mark}").as_bytes()), Vec::<u32>::new(), "left behind");
        }
    }
}

/// What a feed has told so far.
pub(crate) struct Feed {
    pub(crate) receiver: mpsc::Receiver<TerminalEvent>,
    pub(crate) text: String,
}

impl Feed {
    /// Reads until the output has `needle` in it.
    pub(crate) async fn until(&mut self, needle: &str) {
        while !self.text.contains(needle) {
            match self.receiver.recv().await {
                Some(TerminalEvent::Output { text, .. }) => self.text.push_str(&text),
                other => panic!("waiting for {needle:?} after {:?}, got {other:?}", self.text),
            }
        }
    }
}

pub(crate) fn shell(script: &str) -> TerminalSpec {
    command("sh", &["-c", script])
}

pub(crate) fn command(name: &str, args: &[&str]) -> TerminalSpec {
    let mut spec = TerminalSpec::new(name, std::env::temp_dir());
    spec.args = args.iter().map(Into::into).collect();
    spec
}

/// Eight that wait for the end of a command.
pub(crate) fn eight_wait(terminal: &TerminalHandle) -> JoinSet<TerminalReport> {
    let mut waits = JoinSet::new();
    for _ in 0..8 {
        let terminal = terminal.clone();
        waits.spawn(async move { terminal.wait_for_exit().await });
    }
    waits
}

/// Everything a terminal shows.
pub(crate) async fn snapshot(terminal: &TerminalHandle) -> TerminalSnapshot {
    terminal.output(None).await.expect("it is not released")
}

pub(crate) async fn text(terminal: &TerminalHandle) -> String {
    snapshot(terminal).await.output.text
}

/// A named pipe by which a test tells a command to go on.
pub(crate) struct Gate {
    dir: tempfile::TempDir,
}

impl Gate {
    pub(crate) fn new() -> Self {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().expect("a scratch directory");
        mknodat(CWD, dir.path().join("gate"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a named pipe");
        Self { dir }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("gate")
    }

    /// Gives `bytes` to the command that reads the gate, and waits until it has begun to.
    pub(crate) async fn pass(&self, bytes: &'static [u8]) {
        let path = self.path();
        let written = tokio::task::spawn_blocking(move || write(&path, bytes));
        written.await.expect("no panic").expect("somebody reads");
    }
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    std::fs::OpenOptions::new().write(true).open(path)?.write_all(bytes)
}
