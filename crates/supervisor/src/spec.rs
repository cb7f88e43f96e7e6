//! How to start a program: what the caller says, complete before anything runs.

use crate::ladder::{Graces, Leftovers};
use crate::streams::Streams;
use crate::tap::StderrLine;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A program to start, with everything it gets.
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    /// A path, or a name that is looked for in the `PATH` of [`env`](Self::env).
    pub command: OsString,
    /// Arguments after the program's own name. Never parsed by a shell.
    pub args: Vec<OsString>,
    /// The complete environment; the supervisor adds its mark and inherits nothing.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; it has to exist.
    pub cwd: PathBuf,
    /// For whom it runs, in the words of the caller; what belongs to it can be asked for it
    /// ([`Supervisor::lineage`](crate::Supervisor::lineage)).
    pub label: Option<Arc<str>>,
    /// What it gets as stdin, stdout and stderr.
    pub streams: Streams,
    /// The waits of the stop ladder.
    pub graces: Graces,
    /// How long what the program started may go on after the program's own end; then it is killed. By default it has the
    /// rest of the grace after a stop, and no time after another exit.
    pub leftovers: Leftovers,
    /// How long pipes are read after the program is dead, when something that escaped still holds them.
    pub drain: Duration,
    /// Its keeper can be told to let it outlive this process ([`ProcessHandle::keep`](crate::ProcessHandle::keep)). Only on
    /// Linux; else it is as any other.
    pub kept: bool,
    /// Gets each line of stderr as it comes. When it is full, lines are dropped and counted: stderr is always drained.
    pub stderr_lines: Option<mpsc::Sender<StderrLine>>,
}

impl ProgramSpec {
    /// Whether its keeper gets our ends of its streams.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept && cfg!(target_os = "linux")
    }

    /// The bound of architecture section 4 for reading on after the exit.
    pub const DEFAULT_DRAIN: Duration = Duration::from_millis(250);

    /// A spec with three pipes, default graces, no arguments and an empty environment.
    pub fn new(command: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.into(),
            label: None,
            streams: Streams::default(),
            graces: Graces::default(),
            leftovers: Leftovers::default(),
            drain: Self::DEFAULT_DRAIN,
            kept: false,
            stderr_lines: None,
        }
    }
}

/// How to start a keeper: a program that calls [`crate::keeper::run`].
#[derive(Clone, Debug)]
pub struct KeeperCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl KeeperCommand {
    /// This very binary with `subcommand` as its only argument. On Linux it is found even after an upgrade has
    /// replaced the file on disk.
    pub fn this_binary(subcommand: &str) -> std::io::Result<Self> {
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe()?
        };
        Ok(Self { program, args: vec![subcommand.into()] })
    }
}
