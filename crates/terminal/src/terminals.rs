//! The terminals of a host: who creates, finds and releases them.
//!
//! A terminal belongs to an owner, for a session host its session; to all others it does not exist. Not here: what
//! happens in a terminal.

use crate::beginning::{self, Plan, Started, Taken, TerminalTask};
use crate::environment::command_environment;
use crate::event::TerminalEvent;
use crate::handle::{TerminalHandle, TerminalNotFound};
use crate::kept::{Keeping, KeptTerminal, Note, Told};
use crate::report::TerminalReport;
use crate::settings::TerminalSettings;
use crate::spec::{ShellLine, TerminalId, TerminalSpec};
use crate::table::Table;
use acpd_supervisor::{
    Adopting, AttachError, Graces, Leftovers, ProcessMark, ProgramSpec, StartError, Streams, Supervisor,
    TaskScope,
};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::Span;

/// How long what a command left running may go on, to write its last output. It delays the answer to those who
/// wait, when a command leaves something that does not end.
const LINGER: Duration = Duration::from_millis(200);

/// Why there is no terminal.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The owner has to release some first.
    #[error("too many terminals: {limit} are open, release some first")]
    TooMany {
        /// How many it may have.
        limit: usize,
    },
    /// The command does not run.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Its owner released all its terminals while the command was being started.
    #[error("terminal was released before its command was started")]
    Released,
}

/// All terminals of a host. When the last clone is dropped, or their scope is cancelled, all are released.
#[derive(Clone, Debug)]
pub struct Terminals {
    supervisor: Supervisor,
    scope: TaskScope,
    inherited: Arc<Vec<(OsString, OsString)>>,
    settings: Arc<TerminalSettings>,
    table: Table,
}

impl Terminals {
    /// Terminals whose commands are started through `supervisor` and inherit `inherited` without acpd's own
    /// variables. Their tasks run in `scope`.
    pub fn new(
        supervisor: Supervisor,
        scope: TaskScope,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
        settings: TerminalSettings,
    ) -> Self {
        Self {
            supervisor,
            scope,
            inherited: Arc::new(inherited.into_iter().collect()),
            settings: Arc::new(settings),
            table: Table::default(),
        }
    }

    /// Starts a command for `owner`. It runs when this returns, and may run as long as the settings say of it. If
    /// there is a `feed`, it is told the output as it comes, and the end.
    ///
    /// # Errors
    /// See [`CreateError`]; nothing is left running then.
    ///
    /// # Cancel safety
    /// When the future is dropped, there is no terminal, and nothing is left running.
    pub async fn create(
        &self,
        owner: &str,
        spec: TerminalSpec,
        feed: Option<mpsc::Sender<TerminalEvent>>,
    ) -> Result<TerminalId, CreateError> {
        self.create_kept(owner, spec, feed, None).await
    }

    /// The same, where the terminal outlives this host if `keeping` says how.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    ///
    /// # Cancel safety
    /// As [`create`](Self::create).
    pub async fn create_kept(
        &self,
        owner: &str,
        spec: TerminalSpec,
        feed: Option<mpsc::Sender<TerminalEvent>>,
        keeping: Option<Keeping>,
    ) -> Result<TerminalId, CreateError> {
        let timeout = self.settings.timeout_of(&spec.command);
        let line = spec.shell_line().map(|line| {
            let timeout = self.settings.timeout_of(OsStr::new(line.first_word()));
            (line, timeout)
        });
        let (handle, task, started) = self.terminal(spec, (timeout, line), feed, keeping);
        let limit = self.settings.terminals_per_owner;
        let guard = self.table.insert(owner, handle, limit).ok_or(CreateError::TooMany { limit })?;
        self.begin(task);
        is_started(started).await?;
        guard.keep().map_err(|_| CreateError::Released)
    }

    /// Goes on with a terminal of the host before, whose keeper listens in `directory`. Its feed goes on behind what was `told`.
    ///
    /// # Errors
    /// See [`AttachError`]; `note` was not called then.
    pub async fn take_over(
        &self,
        owner: &str,
        terminal: KeptTerminal,
        told: Told,
        feed: mpsc::Sender<TerminalEvent>,
        (directory, label, note): (&Path, Arc<str>, Note),
    ) -> Result<(), AttachError> {
        let mark = ProcessMark::parse(terminal.mark()).ok_or(AttachError::Gone)?;
        let adopting = Adopting { label: Some(label), ..Adopting::default() };
        let attached = self.supervisor.attach(directory, &mark, terminal.key(), adopting).await?;
        let taken = Taken { attached, terminal, told, pace: self.settings.feed, feed, note };
        let (handle, running) = beginning::taken(taken, self.scope.token());
        // It was within the limit before.
        if let Some(guard) = self.table.insert(owner, handle, usize::MAX) {
            let _stays = guard.keep();
        }
        self.scope.within(Span::current()).spawn("terminal", running.serve());
        Ok(())
    }

    /// Starts a command for the caller alone.
    pub(crate) async fn start(
        &self,
        spec: TerminalSpec,
        timeout: Option<Duration>,
    ) -> Result<TerminalHandle, StartError> {
        let line = spec.shell_line().map(|line| (line, timeout));
        let (handle, task, started) = self.terminal(spec, (timeout, line), None, None);
        self.begin(task);
        is_started(started).await?;
        Ok(handle)
    }

    /// A terminal of `owner`, to be asked for its output, waited for, or killed.
    ///
    /// # Errors
    /// There is none of that id, or it is another owner's.
    pub fn get(&self, owner: &str, terminal: &TerminalId) -> Result<TerminalHandle, TerminalNotFound> {
        self.table.get(owner, terminal)
    }

    /// All terminals of `owner`.
    pub fn all_of(&self, owner: &str) -> Vec<TerminalHandle> {
        self.table.all_of(owner)
    }

    /// Releases a terminal: its id is invalid at once, its command is killed if it runs, all that wait for it are
    /// answered. Returns when nothing of it lives.
    ///
    /// # Errors
    /// There is none of that id, or it is another owner's.
    ///
    /// # Cancel safety
    /// Once polled, the terminal is released whether the caller waits or not.
    pub async fn release(
        &self,
        owner: &str,
        terminal: &TerminalId,
    ) -> Result<TerminalReport, TerminalNotFound> {
        let handle = self.table.remove(owner, terminal)?;
        handle.release.cancel();
        Ok(handle.wait_for_exit().await)
    }

    /// Releases all terminals of `owner`, also those that are being started. Returns when nothing of them lives.
    ///
    /// # Cancel safety
    /// Once polled, the terminals are released whether the caller waits or not.
    pub async fn release_all(&self, owner: &str) {
        let handles = self.table.remove_all(owner);
        for handle in &handles {
            handle.release.cancel();
        }
        for handle in handles {
            handle.wait_for_exit().await;
        }
    }

    /// Its lines belong where it is created.
    fn begin(&self, task: TerminalTask) {
        self.scope.within(Span::current()).spawn("terminal", task.run());
    }

    fn terminal(
        &self,
        spec: TerminalSpec,
        (timeout, line): (Option<Duration>, Option<(ShellLine, Option<Duration>)>),
        feed: Option<mpsc::Sender<TerminalEvent>>,
        keeping: Option<Keeping>,
    ) -> (TerminalHandle, TerminalTask, Started) {
        let mut program = ProgramSpec::new(spec.command, spec.cwd);
        program.args = spec.args;
        program.label = spec.label;
        program.env = command_environment(&self.inherited, &spec.env, spec.pty.is_some());
        program.streams = spec.pty.map_or(Streams::Merged, Streams::Pty);
        program.graces = Graces { stdin: Duration::ZERO, term: self.settings.graceful_shutdown_timeout };
        // A kill waits for the command's end, and its whole group was sent the signal.
        program.leftovers = Leftovers { after_exit: LINGER, rest_of_grace: false };
        let limits = self.settings.output_limits(spec.output_byte_limit);
        program.kept = keeping.is_some();
        let plan = Plan { program, timeout, line, limits, pace: self.settings.feed, feed, keeping };
        beginning::terminal(self.supervisor.clone(), plan, self.scope.token())
    }
}

async fn is_started(started: Started) -> Result<(), StartError> {
    started.await.unwrap_or_else(|_| {
        // The task panicked; its scope has logged that.
        Err(StartError::Keeper { command: String::new(), source: io::ErrorKind::BrokenPipe.into() })
    })
}
