//! Runs the tools that install packages, one at a time, each below a keeper: whatever becomes of this process, nothing of
//! them stays.

use super::npm::is_of_caller;
use super::told::Told;
use crate::clean::line;
use crate::process;
use acpd_supervisor::{
    ExitStatus, KeeperCommand, Process, ProcessHandle, ProgramSpec, StartError, Supervisor, TaskScope,
    program_environment,
};
use bytes::BytesMut;
use parking_lot::Mutex;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a tool says on stdout is kept up to this: an answer has some KiB, and what pip reports some hundred.
const STDOUT: usize = 16 * 1024 * 1024;
/// Lines of its stderr that are shown when it fails.
const SHOWN: usize = 20;

/// Why a tool did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("cannot start {program}")]
    Start {
        program: String,
        #[source]
        source: StartError,
    },
    #[error("no directory for temporary files")]
    Directory(#[from] io::Error),
    #[error("{what} failed ({status}){said}")]
    Failed { what: String, status: ExitStatus, said: String },
}

/// A tool to run.
pub(super) struct Program<'a> {
    /// What it does, for people.
    pub(super) what: &'a str,
    pub(super) program: &'a Path,
    pub(super) args: Vec<OsString>,
    /// Its working directory, in which it makes its temporary files.
    pub(super) cwd: &'a Path,
    /// Variables beside those of this process.
    pub(super) env: &'a [(&'a str, &'a str)],
}

/// Runs tools, and tells how they are doing.
pub(crate) struct Programs {
    supervisor: Supervisor,
    scope: TaskScope,
    /// The one that runs.
    running: Mutex<Option<ProcessHandle>>,
    interrupted: Arc<AtomicBool>,
    pub(crate) told: Told,
}

impl Programs {
    pub(crate) fn new() -> io::Result<Self> {
        let scope = TaskScope::default();
        let keeper = KeeperCommand::this_binary(process::KEEPER)?;
        let host = uuid::Uuid::now_v7().to_string();
        let supervisor = Supervisor::new(keeper, &host, scope.clone());
        let interrupted = Arc::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        Ok(Self { supervisor, scope, running: Mutex::default(), interrupted, told: Told::new() })
    }

    /// What starts programs here, and what their tasks belong to.
    pub(crate) fn means(&self) -> (&Supervisor, &TaskScope) {
        (&self.supervisor, &self.scope)
    }

    /// Whether a signal asked for an end, for what does not wait.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }

    /// Runs one to its end; what it said on stdout. When this is dropped, it is killed.
    pub(super) async fn run(&self, program: Program<'_>) -> Result<Vec<u8>, ProgramError> {
        let temporary = program.cwd.join("tmp");
        std::fs::create_dir_all(&temporary)?;
        let mut env: Vec<(OsString, OsString)> =
            program.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        env.push(("TMPDIR".into(), temporary.into()));
        let mut spec = ProgramSpec::new(program.program, program.cwd);
        spec.args = program.args;
        let inherited = std::env::vars_os().filter(|(name, _)| !is_of_caller(name));
        spec.env = program_environment(inherited, &env);
        let started = self.supervisor.start(spec).await;
        let started = started.map_err(|source| ProgramError::Start {
            program: program.program.display().to_string(),
            source,
        })?;
        let Process { stdin, mut stdout, handle } = started;
        drop(stdin);
        *self.running.lock() = Some(handle.clone());
        let killed = KillOnDrop(handle);
        let read = async {
            let mut said = Vec::new();
            let mut bytes = BytesMut::with_capacity(64 * 1024);
            while stdout.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
                let room = STDOUT.saturating_sub(said.len());
                said.extend_from_slice(&bytes[..bytes.len().min(room)]);
                bytes.clear();
            }
            said
        };
        let work = async { tokio::join!(read, killed.0.exited()) };
        let (stdout, report) = self.with_seconds(program.what, work).await;
        *self.running.lock() = None;
        match &report.status {
            ExitStatus::Code(0) => Ok(stdout),
            status => {
                let stderr = report.stderr.tail.as_ref().unwrap_or(&report.stderr.head);
                let said =
                    if stderr.trim().is_empty() { String::from_utf8_lossy(&stdout) } else { stderr.into() };
                Err(ProgramError::Failed {
                    what: program.what.to_owned(),
                    status: status.clone(),
                    said: last_lines(&said),
                })
            }
        }
    }

    async fn with_seconds<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        let mut seconds = 0_u64;
        loop {
            if let Ok(done) = tokio::time::timeout(Duration::from_secs(1), &mut work).await {
                self.told.still();
                return done;
            }
            seconds += 1;
            self.told.waiting(what, seconds);
        }
    }

    /// Kills the one that runs, and waits for its end.
    pub(crate) async fn kill(&self) {
        let running = self.running.lock().take();
        if let Some(running) = running {
            running.kill();
            running.exited().await;
        }
    }

    /// Waits for the end of everything that was started.
    pub(crate) async fn finished(&self) {
        self.scope.finished().await;
    }
}

fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = &lines[lines.len().saturating_sub(SHOWN)..];
    let shown: String = shown.iter().map(|text| format!("\n  | {}", line(text, 300))).collect();
    if shown.is_empty() { String::new() } else { format!("; it wrote:{shown}") }
}

/// It has no time left when it is not waited for any more.
struct KillOnDrop(ProcessHandle);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// A program of one of these names in `PATH`.
pub(super) fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    names.iter().find_map(|name| acpd_catalog::program_in(OsStr::new(&path), name))
}
