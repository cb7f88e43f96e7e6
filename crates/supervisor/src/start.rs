//! Starting a program: the keeper first, then the program through it.

use crate::keeper::frames::{Frame, LONGEST};
use crate::keeper::protocol::{FromKeeper, Running};
use crate::keeper::start_frame::{Pipes, SpawnFailure, StartFrame, WireProgram};
use crate::keeper_process::KeeperProcess;
use crate::keeper_socket::KeeperSocket;
use crate::kept_process::KeptTask;
use crate::lineage::{Kept, Known, Lineage};
use crate::link::Link;
use crate::lost::LostKeepers;
use crate::metrics::KeeperRuns;
use crate::pipes::{Stdin, StdinShared, Stdout};
use crate::process::{self, Process};
use crate::scope::TaskScope;
use crate::spec::{KeeperCommand, ProgramSpec};
use crate::starting::{Starting, Unfinished};
use crate::stderr::StderrRecorder;
use crate::streams::{Ours, Output};
use crate::sweep::{KEEPER_MARK, MARK, ProcessMark};
use crate::tap::StderrTap;
use crate::teed::Teed;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// An exec may hang on a dead network file system; no caller waits for it longer than this.
const START_BOUND: Duration = Duration::from_secs(30);

/// A longer `PATH`, in bytes, hides what an error says.
const LONGEST_PATH: usize = 200;

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing of that name.
    #[error("command not found: {command}{} (looked in {searched})", if *has_arguments { "; arguments go into args" } else { "" })]
    NotFound {
        /// The command as configured.
        command: String,
        /// Where it was looked for.
        searched: String,
        /// Its first word is a program: arguments were written behind it.
        has_arguments: bool,
    },
    /// The program's first line names an interpreter that is not there.
    #[error("command cannot run: the interpreter that {command} names in its first line is not installed")]
    InterpreterNotFound {
        /// The command as configured.
        command: String,
    },
    /// The file is there, but it is not a program that may run.
    #[error("command is not executable: {command}")]
    NotExecutable {
        /// The command as configured.
        command: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The working directory cannot be entered.
    #[error("bad working directory: {}", cwd.display())]
    BadCwd {
        /// The directory.
        cwd: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Command, arguments or environment cannot be passed to a program.
    #[error("{detail}")]
    Unrepresentable {
        /// Which part, and why.
        detail: String,
    },
    /// The operating system refused, for example for lack of processes or memory.
    #[error("cannot start {command}")]
    Refused {
        /// The command as configured.
        command: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The keeper could not be started or did not answer.
    #[error("the keeper of {command} failed")]
    Keeper {
        /// The command as configured.
        command: String,
        /// What went wrong with it.
        #[source]
        source: io::Error,
    },
}

/// Starts programs for one host.
#[derive(Clone, Debug)]
pub struct Supervisor {
    keeper: KeeperCommand,
    host: Arc<str>,
    /// The mark of this process itself, when it runs below another host.
    outer: Option<Arc<OsStr>>,
    next: Arc<AtomicU64>,
    scope: TaskScope,
    kept: Kept,
    lost: LostKeepers,
}

impl Supervisor {
    /// `host` goes into the mark of every process, so that a later host can find what outlived this one.
    pub fn new(keeper: KeeperCommand, host: &str, scope: TaskScope) -> Self {
        Self {
            keeper,
            host: host.into(),
            outer: std::env::var_os(MARK).filter(|mark| !mark.is_empty()).map(Arc::from),
            next: Arc::new(AtomicU64::new(1)),
            lost: LostKeepers::new(scope.clone()),
            scope,
            kept: Kept::default(),
        }
    }

    pub(crate) fn scope(&self) -> &TaskScope {
        &self.scope
    }

    pub(crate) fn lost(&self) -> LostKeepers {
        self.lost.clone()
    }

    /// A program that was found; without a keeper it has ended.
    pub(crate) fn known(&self, mark: ProcessMark, keeper: Option<u32>, label: Option<Arc<str>>) -> Known {
        self.kept.add(mark, keeper, label)
    }

    /// Whether this program is one of ours, and its end not recorded.
    pub(crate) fn has(&self, mark: &ProcessMark) -> bool {
        self.kept.has(mark)
    }

    /// Where a process of this machine comes from, as far as can be seen. Reads a few small files of `/proc`.
    pub fn lineage(&self, pid: u32) -> Lineage {
        self.kept.lineage(&self.host, pid)
    }

    /// Starts a program. When this returns the program was executed (or the error says why not), and its
    /// process task runs until everything of it is gone, and logs in the span in which it was started.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left running then.
    pub async fn start(&self, spec: ProgramSpec) -> Result<Process, StartError> {
        let mark = ProcessMark::new(&self.host, self.next.fetch_add(1, Ordering::Relaxed));
        let command = spec.command.to_string_lossy().into_owned();
        let keeper_failed = |source| StartError::Keeper { command: command.clone(), source };
        let body = self
            .wire_program(&spec, &mark)
            .encode()
            .map_err(|error| StartError::Unrepresentable { detail: format!("{command}: {error}") })?;

        let (streams, theirs_of_program) = spec.streams.open().map_err(keeper_failed)?;
        let (ours, theirs) = UnixStream::pair().map_err(keeper_failed)?;
        let link = Arc::new(Link::new(KeeperSocket::new(ours).map_err(keeper_failed)?));
        let (opened, others_of_keeper) = if spec.is_kept() {
            let (opened, others) = Opened::kept(streams, &link).map_err(keeper_failed)?;
            (opened, Some(others))
        } else {
            (Opened::new(streams).map_err(keeper_failed)?, None)
        };
        let keeper = self.spawn_keeper(theirs.into(), &mark).map_err(keeper_failed)?;
        let known = keeper.id().map(|pid| self.kept.add(mark.clone(), Some(pid), spec.label.clone()));
        let unfinished = Unfinished {
            keeper,
            mark: mark.clone(),
            bound: process::keeper_bound(spec.graces),
            lost: self.lost.clone(),
            known,
        };
        let starting = Starting::new(unfinished, self.scope.within(Span::current()));
        let ends = theirs_of_program.iter().chain(others_of_keeper.iter().flatten());
        let ends: Vec<_> = ends.map(AsFd::as_fd).collect();
        let sent = link.socket().and_then(|socket| StartFrame::send_head(&socket, body.len(), &ends));
        sent.map_err(keeper_failed)?;
        drop((theirs_of_program, others_of_keeper));

        let mut control = Control { link, read: BytesMut::new() };
        let answer = tokio::time::timeout(START_BOUND, async {
            control.link.send_whole(&body).await;
            control.report().await
        });
        let failed = match answer.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(Some(FromKeeper::Started(running))) => {
                let Unfinished { keeper, known, lost, .. } = starting.finish();
                let keeper = KeeperProcess::Child(keeper);
                let started = Started { running, mark, keeper, _known: known, control, lost };
                return Ok(self.adopt(&spec, started, opened));
            }
            Ok(Some(FromKeeper::NotStarted(failure))) => start_error(&spec, failure),
            Ok(Some(_) | None) => keeper_failed(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => keeper_failed(error),
        };
        // The keeper takes this as a request to stop whatever it has started, which gets it too.
        drop((control, opened));
        starting.end().await;
        Err(failed)
    }

    fn spawn_keeper(&self, control: OwnedFd, mark: &ProcessMark) -> io::Result<Child> {
        #[expect(clippy::disallowed_methods, reason = "the keeper is what every other place has to use")]
        let mut command = Command::new(&self.keeper.program);
        command
            // What `ps` shows.
            .arg0("acpd")
            .args(&self.keeper.args)
            .env_clear()
            .env(KEEPER_MARK, mark.as_str())
            .stdin(Stdio::from(control))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn()
    }

    fn wire_program(&self, spec: &ProgramSpec, mark: &ProcessMark) -> WireProgram {
        let mut env: Vec<_> =
            spec.env.iter().filter(|(name, _)| name != MARK && name != KEEPER_MARK).cloned().collect();
        let mut marks = OsString::from(mark.as_str());
        if let Some(outer) = &self.outer {
            marks.push(",");
            marks.push(outer);
        }
        env.push((MARK.into(), marks));
        let mut graces = spec.graces;
        if !spec.streams.has_stdin() {
            // That rung has no effect on this program.
            graces.stdin = Duration::ZERO;
        }
        WireProgram {
            command: spec.command.clone(),
            args: spec.args.clone(),
            env,
            cwd: spec.cwd.clone(),
            graces,
            leftovers: spec.leftovers,
            controls_terminal: spec.streams.controls_terminal(),
        }
    }

    fn adopt(&self, spec: &ProgramSpec, started: Started, opened: Opened) -> Process {
        let Opened { stdin, stdin_shared, stdout, stderr, cut, stdout_done } = opened;
        let scope = self.scope.within(Span::current());
        let handle = if spec.is_kept() {
            let Started { running, mark, keeper, _known, control, lost } = started;
            let (handle, requested, publish) =
                process::handle(running.pid, mark.clone(), Some(Arc::clone(&control.link)));
            let task = KeptTask {
                _runs: KeeperRuns::new(),
                _known,
                keeper,
                mark,
                running,
                lost,
                control,
                graces: spec.graces,
                drain: spec.drain,
                stdin: stdin_shared,
                recorder: StderrRecorder::default(),
                tap: StderrTap::new(spec.stderr_lines.clone()),
                requested,
                publish,
                cut,
                stdout_done,
            };
            scope.spawn_lasting("process", Box::new(task).run(None));
            handle
        } else {
            let (handle, task) = process::task(spec, started, stdin_shared, stderr, cut, stdout_done);
            scope.spawn_lasting("process", Box::new(task).run());
            handle
        };
        Process { stdin, stdout, handle }
    }
}

/// Our ends of a program's streams, ready to be read and written.
struct Opened {
    stdin: Stdin,
    stdin_shared: Arc<StdinShared>,
    stdout: Stdout,
    stderr: Option<pipe::Receiver>,
    cut: CancellationToken,
    stdout_done: CancellationToken,
}

impl Opened {
    fn new(ours: Ours) -> io::Result<Self> {
        let (stdin, stdin_shared) = Stdin::new(ours.stdin)?;
        let (cut, stdout_done) = (CancellationToken::new(), CancellationToken::new());
        let stdout = Stdout::new(ours.stdout, cut.clone(), stdout_done.clone().drop_guard())?;
        let stderr = ours.stderr.map(pipe::Receiver::from_owned_fd).transpose()?;
        Ok(Self { stdin, stdin_shared, stdout, stderr, cut, stdout_done })
    }

    /// Those of a kept program; its keeper gets the second.
    fn kept(ours: Ours, link: &Arc<Link>) -> io::Result<(Self, Pipes)> {
        let is_pty = matches!(ours.stdout, Output::Pty(_));
        let (ends, stdout_end) = ours.shared_with_keeper()?;
        let (stdin, stdin_shared) = Stdin::kept(Arc::clone(link));
        let (cut, stdout_done) = (CancellationToken::new(), CancellationToken::new());
        let teed = Teed::new(stdout_end, Arc::clone(link), Bytes::new(), 0)?;
        let stdout = Stdout::kept(teed, is_pty, cut.clone(), stdout_done.clone().drop_guard());
        Ok((Self { stdin, stdin_shared, stdout, stderr: None, cut, stdout_done }, ends))
    }
}

/// A program that the keeper says is running.
pub(crate) struct Started {
    pub(crate) running: Running,
    pub(crate) mark: ProcessMark,
    pub(crate) keeper: KeeperProcess,
    /// As long as it runs.
    pub(crate) _known: Option<Known>,
    pub(crate) control: Control,
    pub(crate) lost: LostKeepers,
}

/// What is read of the keeper's socket.
pub(crate) struct Control {
    pub(crate) link: Arc<Link>,
    /// What is read and not given yet; kept here so that a dropped future loses nothing.
    pub(crate) read: BytesMut,
}

/// About the length of a report, in bytes.
const REPORT: usize = 256;

impl Control {
    /// The next report; None when the keeper is gone.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn report(&mut self) -> io::Result<Option<FromKeeper>> {
        loop {
            while let Some(frame) = Frame::take(&mut self.read, LONGEST)? {
                // One of a later version says nothing to us.
                let told = FromKeeper::read(frame);
                if let Some(told) = told.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
                    return Ok(Some(told));
                }
            }
            if self.read.is_empty() {
                // A keeper that says nothing takes no room.
                self.read = BytesMut::new();
            }
            let Ok(socket) = self.link.socket() else { return Ok(None) };
            socket.readable().await?;
            self.read.reserve(REPORT);
            match socket.try_read_buf(&mut self.read) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn start_error(spec: &ProgramSpec, failure: SpawnFailure) -> StartError {
    let command = spec.command.to_string_lossy().into_owned();
    match failure {
        SpawnFailure::NotFound => {
            let path = spec.env.iter().rev().find(|(name, _)| name == "PATH");
            let searched = match path {
                _ if command.contains('/') => format!("the file system, from {}", spec.cwd.display()),
                Some((_, path)) if path.len() > LONGEST_PATH => {
                    format!("the {} directories of PATH", std::env::split_paths(path).count())
                }
                Some((_, path)) => format!("PATH: {}", path.to_string_lossy()),
                None => "no directory: PATH is not set".to_owned(),
            };
            let has_arguments = begins_with_a_program(&command, spec);
            StartError::NotFound { command, searched, has_arguments }
        }
        SpawnFailure::InterpreterNotFound => StartError::InterpreterNotFound { command },
        SpawnFailure::NotExecutable { errno } => {
            StartError::NotExecutable { command, source: io::Error::from_raw_os_error(errno) }
        }
        SpawnFailure::BadCwd { errno } => {
            StartError::BadCwd { cwd: spec.cwd.clone(), source: io::Error::from_raw_os_error(errno) }
        }
        SpawnFailure::Other { errno } => {
            StartError::Refused { command, source: io::Error::from_raw_os_error(errno) }
        }
    }
}

/// Whether the first word of a command that is no program is one, found as the command was looked for.
fn begins_with_a_program(command: &str, spec: &ProgramSpec) -> bool {
    let Some((first, _)) = command.trim_start().split_once(char::is_whitespace) else { return false };
    let is_program = |file: &Path| {
        file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if first.contains('/') {
        return is_program(&spec.cwd.join(first));
    }
    let path = spec.env.iter().rev().find(|(name, _)| name == "PATH");
    path.is_some_and(|(_, path)| {
        std::env::split_paths(path).any(|dir| is_program(&spec.cwd.join(dir).join(first)))
    })
}
