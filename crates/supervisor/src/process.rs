//! The process task: our end of one program and its keeper. That of a kept program is in `kept_process.rs`.
//!
//! Owner of the control socket, of stderr and of the keeper's process entry. It passes stop requests on, drains
//! stderr always, and publishes one [`ExitReport`] after everything of the program is gone. The ladder itself
//! runs in the keeper; here is only the backstop for a keeper that does not answer.

use crate::keeper::protocol::{Alive, Command, Exited, FromKeeper, Keep};
use crate::ladder::{Graces, Rung};
use crate::link::Link;
use crate::metrics::{self, KeeperRuns};
use crate::outcome::{Outcome, Teller, outcome};
use crate::pipes::{Stdin, StdinShared, Stdout};
use crate::procfs;
use crate::queue::{self, queue};
use crate::report::{ExitReport, ExitStatus};
use crate::scope::sleep_until;
use crate::spec::ProgramSpec;
use crate::start::Started;
use crate::stderr::StderrRecorder;
use crate::sweep::ProcessMark;
use crate::tap::StderrTap;
use rustix::process::Pid;
use std::future::{pending, poll_fn};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Stop requests are idempotent past the second, so a full queue may drop the rest.
const REQUESTS: usize = 4;
/// Bytes of stderr taken in one read, at most.
const STDERR_READ: usize = 16 * 1024;
/// Bytes of stderr taken in a read where there was less than that last time. Most programs say next to nothing there.
const QUIET_READ: usize = 512;
/// How much longer than its own graces a keeper may take before it is killed.
pub(crate) const KEEPER_SLACK: Duration = Duration::from_secs(5);

/// How long a keeper may take to stop its program and everything that came of it.
pub(crate) fn keeper_bound(graces: Graces) -> Duration {
    graces.stdin + graces.term + KEEPER_SLACK
}

/// A running program.
#[derive(Debug)]
pub struct Process {
    /// Where the program reads.
    pub stdin: Stdin,
    /// What the program writes.
    pub stdout: Stdout,
    /// Stops it and reports how it ended.
    pub handle: ProcessHandle,
}

/// Stops a program and reports how it ended. When the last handle is dropped the program is stopped.
///
/// The keeper of a kept program stays after the end until that was recorded: until the last handle is dropped, or one
/// stops what has ended.
#[derive(Clone, Debug)]
pub struct ProcessHandle {
    pid: u32,
    mark: ProcessMark,
    requests: queue::Sender<Command>,
    report: Outcome<Arc<ExitReport>>,
    /// To the keeper of a kept program.
    link: Option<Arc<Link>>,
}

/// For how long a program outlives its host, and what a later host needs to find it.
#[derive(Clone, Debug)]
pub struct KeepFor {
    /// How long it waits for another host.
    pub keep: Duration,
    /// How much of its stdout is taken meanwhile; then it blocks.
    pub detached_bytes: u64,
    /// The longest line: one that is longer than `detached_bytes` is taken up to its end, if it is the first.
    pub line_bytes: u64,
    /// Where its keeper listens. It is made if it is missing; only this user may enter it.
    pub directory: PathBuf,
    /// What a later host has to know. It is not in any environment or file.
    pub key: String,
}

impl KeepFor {
    /// A key that cannot be guessed: two random numbers of 122 bits.
    pub fn fresh_key() -> String {
        format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
    }
}

impl ProcessHandle {
    /// Process id of the program.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// True once the program has ended, which is before its [report](Self::over) comes. False where the system does not tell.
    pub fn has_ended(&self) -> bool {
        i32::try_from(self.pid).ok().and_then(Pid::from_raw).is_some_and(procfs::has_ended)
    }

    /// What names it for a later host.
    pub fn mark(&self) -> &ProcessMark {
        &self.mark
    }

    /// From now on it outlives this process, if it was started as kept. Said again, it changes for how long, and how much of its
    /// output is taken meanwhile. Does not wait; a keeper that cannot do it says so in the log.
    pub fn keep(&self, what: KeepFor) {
        let KeepFor { keep, detached_bytes, line_bytes, directory, key } = what;
        let Some(link) = &self.link else { return };
        let keep_ms = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        let name = self.mark.as_str().to_owned();
        link.send(&Command::Keep(Keep { keep_ms, detached_bytes, line_bytes, directory, name, key }));
    }

    /// Ends the connection to the keeper of a kept program, as if this process had died: nothing is stopped here, stdout
    /// ends, and no report comes. Another program goes on as before.
    pub fn detach(&self) {
        if let Some(link) = &self.link {
            link.let_go();
        }
    }

    /// Waits until a kept program is not ours any more: another controller has it, or it was [detached](Self::detach).
    /// Its report never comes then. Known before stdout ends.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn superseded(&self) {
        match &self.link {
            Some(link) => link.let_go.cancelled().await,
            None => pending().await,
        }
    }

    /// Whether [`superseded`](Self::superseded) would answer at once.
    pub fn is_superseded(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.let_go.is_cancelled())
    }

    /// Starts the stop ladder; asked again, jumps to SIGKILL. Does not wait.
    pub fn stop(&self) {
        let _full = self.requests.try_send(Command::Stop);
    }

    /// It ends by itself, by the ladder, unless this is called again within that time: also when this process is stopped, or dead and
    /// the program kept. None: it does not. Does not wait.
    pub fn end_within(&self, within: Option<Duration>) {
        let millis = |within: Duration| u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        let alive = Command::Alive(Alive { within_ms: within.map(millis) });
        match &self.link {
            // At once: the connection may end with this process.
            Some(link) => link.send(&alive),
            None => drop(self.requests.try_send(alive)),
        }
    }

    /// Jumps to SIGKILL. Does not wait.
    pub fn kill(&self) {
        let _full = self.requests.try_send(Command::Kill);
    }

    /// Waits for the end; answers at once when it has passed, and never when the program is not ours any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn exited(&self) -> Arc<ExitReport> {
        match self.over().await {
            Some(report) => report,
            None => pending().await,
        }
    }

    /// Waits for the end, or until the program is not ours any more: None.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn over(&self) -> Option<Arc<ExitReport>> {
        if let Some(report) = self.report.wait().await {
            return Some(Arc::clone(report));
        }
        if self.is_superseded() {
            return None;
        }
        // The task panicked; its scope has logged that, and the keeper ends the program.
        Some(Arc::new(self.unknown_end()))
    }

    /// The report of an end of which nothing is known.
    pub fn unknown_end(&self) -> ExitReport {
        ExitReport {
            pid: self.pid,
            status: ExitStatus::Unknown,
            leaked: 0,
            rungs: Vec::new(),
            oom_kills: 0,
            stderr: StderrRecorder::default().excerpt(),
            containment: crate::Containment::ProcessGroup,
        }
    }
}

/// A handle, and what its task needs of it.
pub(crate) type Handling = (ProcessHandle, queue::Receiver<Command>, Teller<Arc<ExitReport>>);

pub(crate) fn handle(pid: u32, mark: ProcessMark, link: Option<Arc<Link>>) -> Handling {
    let (requests, requested) = queue(REQUESTS);
    let (publish, report) = outcome();
    (ProcessHandle { pid, mark, requests, report, link }, requested, publish)
}

/// Makes handle and task of a started program.
pub(crate) fn task(
    spec: &ProgramSpec,
    started: Started,
    stdin: Arc<StdinShared>,
    stderr: Option<pipe::Receiver>,
    cut: CancellationToken,
    stdout_done: CancellationToken,
) -> (ProcessHandle, ProcessTask) {
    let (handle, requested, publish) = handle(started.running.pid, started.mark.clone(), None);
    let task = ProcessTask {
        _runs: KeeperRuns::new(),
        started,
        graces: spec.graces,
        drain: spec.drain,
        stdin,
        stderr,
        recorder: StderrRecorder::default(),
        tap: StderrTap::new(spec.stderr_lines.clone()),
        requested,
        publish,
        cut,
        stdout_done,
    };
    (handle, task)
}

pub(crate) struct ProcessTask {
    _runs: KeeperRuns,
    started: Started,
    graces: Graces,
    drain: Duration,
    stdin: Arc<StdinShared>,
    /// None after its end, and when it is the same as stdout.
    stderr: Option<pipe::Receiver>,
    recorder: StderrRecorder,
    tap: StderrTap,
    requested: queue::Receiver<Command>,
    publish: Teller<Arc<ExitReport>>,
    cut: CancellationToken,
    stdout_done: CancellationToken,
}

/// What the keeper told of the end, or what is known without it.
struct Ended {
    status: ExitStatus,
    leaked: u32,
    rungs: Vec<Rung>,
    oom_kills: u32,
}

enum Event {
    Request(Option<Command>),
    Stderr(io::Result<()>),
    Keeper(io::Result<Option<FromKeeper>>),
    Overdue,
}

impl ProcessTask {
    /// In a box, because a future holds what it is given twice: where it came in and where it is used.
    pub(crate) async fn run(mut self: Box<Self>) {
        let ended = self.serve().await;
        // In a box of its own: a program that runs need not have the room for its end.
        Box::pin(self.finish(ended)).await;
    }

    async fn finish(mut self: Box<Self>, ended: Ended) {
        let Ended { status, leaked, rungs, oom_kills } = ended;
        let exited_at = Instant::now();
        self.stdin.close();
        let by = exited_at + self.drain;
        let _bound = tokio::time::timeout_at(by, self.drain_stderr()).await;
        if let Some(line) = self.recorder.open_line() {
            self.tap.give(&line);
        }
        let report = ExitReport {
            pid: self.started.running.pid,
            status,
            leaked,
            rungs,
            oom_kills,
            stderr: self.recorder.excerpt(),
            containment: self.started.running.containment,
        };
        self.publish.tell(Arc::new(report));
        let _bound = tokio::time::timeout_at(by, self.tap.finish()).await;
        let _bound = tokio::time::timeout_at(by, self.stdout_done.cancelled()).await;
        self.cut.cancel();
    }

    async fn serve(&mut self) -> Ended {
        let mut overdue: Option<Instant> = None;
        let mut room = QUIET_READ;
        let mut owned = true;
        loop {
            let event = tokio::select! {
                request = self.requested.recv(), if owned => Event::Request(request),
                ready = stderr_ready(self.stderr.as_ref()), if self.stderr.is_some() => Event::Stderr(ready),
                report = self.started.control.report() => Event::Keeper(report),
                () = sleep_until(overdue), if overdue.is_some() => Event::Overdue,
            };
            match event {
                Event::Request(Some(alive @ Command::Alive(_))) => self.started.control.link.send(&alive),
                Event::Request(request) => {
                    owned = request.is_some();
                    // Before stdin is closed: a program that leaves at once is not to be gone before its keeper is asked. A
                    // keeper that is gone says so when its report is read.
                    self.started.control.link.send(&request.unwrap_or(Command::Stop));
                    self.stdin.close();
                    self.started.keeper.wake();
                    overdue.get_or_insert(Instant::now() + keeper_bound(self.graces));
                }
                Event::Stderr(Err(_)) => self.stderr = None,
                Event::Stderr(Ok(())) => {
                    if self.read_stderr(room) == room {
                        room = STDERR_READ;
                        // A program that floods always has more, and the others must not wait for that.
                        tokio::task::yield_now().await;
                    }
                }
                Event::Keeper(Ok(Some(FromKeeper::Exited(exited)))) => {
                    let Exited { status, leaked, rungs, oom_kills, .. } = exited;
                    metrics::leaked(leaked);
                    if leaked > 0 {
                        let pid = self.started.running.pid;
                        tracing::info!(pid, killed = leaked, "killed what a program had left behind");
                    }
                    Box::pin(self.reap_keeper()).await;
                    return Ended { status, leaked, rungs, oom_kills };
                }
                Event::Keeper(Ok(Some(_))) => {}
                Event::Keeper(Ok(None) | Err(_)) => return Box::pin(self.keeper_lost()).await,
                Event::Overdue => {
                    tracing::error!(
                        mark = self.started.mark.as_str(),
                        "the keeper does not answer, killing it"
                    );
                    self.started.keeper.start_kill();
                    overdue = None;
                }
            }
        }
    }

    async fn reap_keeper(&mut self) {
        // Its report was its last word.
        if tokio::time::timeout(KEEPER_SLACK, self.started.keeper.wait()).await.is_err() {
            self.started.keeper.start_kill();
            self.started.keeper.wait().await;
        }
    }

    /// The keeper was killed. The program died with it; the rest is found by its mark.
    async fn keeper_lost(&mut self) -> Ended {
        self.started.keeper.start_kill();
        self.started.keeper.wait().await;
        let mark = self.started.mark.clone();
        tracing::error!(mark = mark.as_str(), "the keeper was lost, sweeping what it kept");
        let leaked = self.started.lost.sweep(mark).await;
        Ended { status: ExitStatus::Unknown, leaked, rungs: vec![Rung::Killed], oom_kills: 0 }
    }

    async fn drain_stderr(&mut self) {
        while stderr_ready(self.stderr.as_ref()).await.is_ok() && self.stderr.is_some() {
            self.read_stderr(STDERR_READ);
        }
    }

    /// Takes what is there, at most `room` bytes; gives how many. The buffer is there for the read only, since most
    /// programs say nothing most of the time.
    fn read_stderr(&mut self, room: usize) -> usize {
        let Some(pipe) = &self.stderr else { return 0 };
        let mut buffer = vec![0; room];
        match pipe.try_read(&mut buffer) {
            Ok(read) if read > 0 => {
                self.take_stderr(&buffer[..read]);
                return read;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => self.stderr = None,
        }
        0
    }

    fn take_stderr(&mut self, bytes: &[u8]) {
        self.recorder.push_to(bytes, |line| self.tap.give(line));
    }
}

/// Waits until stderr can be read, if there is one. By its poll function: the future of `readable` is a list entry of its
/// own, for many that wait.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped.
async fn stderr_ready(pipe: Option<&pipe::Receiver>) -> io::Result<()> {
    match pipe {
        Some(pipe) => poll_fn(|cx| pipe.poll_read_ready(cx)).await,
        None => Ok(()),
    }
}
