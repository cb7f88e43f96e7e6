//! The task that owns one agent process: the shell around its core. Reads lines, sees the process end, and does what a
//! sender cannot do at once.
//!
//! One loop, nothing awaited outside its select. Memory is bounded on both sides: while a session is behind, the
//! agent is not read; while the agent does not read, requests to it are refused, and it is not read either.
//! Invariant: every session hears [`SessionInput::Gone`] after everything else, once; also when another host has taken the
//! process away, to which nothing is done then.

use super::connection::{AgentConnection, ForSession};
use super::core::AgentCore;
use super::handle::InUse;
use super::health::Running;
use super::inbox::{Inbox, NotTaken};
use super::{AgentEnd, AgentFault, SessionInput};
use crate::secrets::Secrets;
use acpd_supervisor::{self as supervisor, ExitReport, ProcessHandle, Stdout, Teller, sleep_until};
use acpd_wire::LineBuffer;
use parking_lot::Mutex;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// An agent that closed stdin or stdout and did not exit gets this long to follow (SU-8).
const HALF_CLOSED: Duration = Duration::from_secs(1);

/// While something is not settled, how often that is looked at.
const SETTLING: Duration = Duration::from_millis(50);

/// After so many batches that sessions took at once other tasks have their turn: an agent that never stops speaking would
/// keep its thread for long, which may be the only one.
const BATCHES: usize = 4;

/// What is known of a process beside its connection.
pub(super) struct RunRecorder {
    /// What the record of its end must not tell.
    secrets: Arc<Mutex<Secrets>>,
    /// It counts as running.
    running: Running,
    /// Cancelled when the process gets its graces no more.
    kill: CancellationToken,
    /// Those that use it, and record its end.
    user: Weak<InUse>,
}

impl RunRecorder {
    pub(super) fn new(
        secrets: &Arc<Mutex<Secrets>>,
        running: Running,
        kill: &CancellationToken,
        user: &Arc<InUse>,
    ) -> Self {
        Self { secrets: Arc::clone(secrets), running, kill: kill.clone(), user: Arc::downgrade(user) }
    }
}

/// Where a host begins with a process that another one began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TakenOver {
    /// What its stdout is read from.
    pub(super) position: u64,
    /// The hosts that it had before.
    pub(super) lease: u64,
}

/// The process and its stdout.
struct Process {
    handle: ProcessHandle,
    stdout: Stdout,
    lines: LineBuffer,
    stdout_open: bool,
    /// Its stdin or its stdout is closed.
    is_half_closed: bool,
    half_closed_until: Option<Instant>,
}

/// The connection of a task, closed with it also when it panics.
struct OpenConnection(Arc<AgentConnection>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        drop(self.0.close());
    }
}

pub(super) struct AgentTask {
    connection: OpenConnection,
    process: Process,
    /// The session that is behind; while there is one, nothing is read.
    blocked: Option<Arc<Inbox>>,
    /// When it is looked how far all is settled.
    settle_at: Option<Instant>,
    publish: Teller<Arc<AgentEnd>>,
    recorder: RunRecorder,
}

enum Event {
    Changed,
    Read(io::Result<usize>),
    Writable(io::Result<()>),
    StdinClosed,
    Unblocked,
    HalfClosedTooLong,
    Killed,
    /// None: it is another host's.
    Over(Option<Arc<ExitReport>>),
}

impl AgentTask {
    /// A task for a process, and the connection to it.
    pub(super) fn new(
        process: supervisor::Process,
        line_limit: usize,
        begun: TakenOver,
        publish: Teller<Arc<AgentEnd>>,
        recorder: RunRecorder,
        span: Span,
    ) -> (Arc<AgentConnection>, Self) {
        let supervisor::Process { handle, stdin, stdout, .. } = process;
        let TakenOver { position, lease } = begun;
        let core = AgentCore::new(stdin.framing(), position, lease);
        let connection = Arc::new(AgentConnection::new(handle.clone(), stdin, core, span));
        let lines = LineBuffer::starting_at(line_limit, position);
        let process = Process {
            handle,
            stdout,
            lines,
            stdout_open: true,
            is_half_closed: false,
            half_closed_until: None,
        };
        let task = Self {
            connection: OpenConnection(Arc::clone(&connection)),
            process,
            blocked: None,
            settle_at: None,
            publish,
            recorder,
        };
        (connection, task)
    }

    /// In a box, because a future holds what it is given twice: where it came in and where it is used.
    pub(super) async fn run(mut self: Box<Self>) {
        let connection = Arc::clone(&self.connection.0);
        let mut exited = None;
        let mut killed = false;
        let mut batches = 0;
        while exited.is_none() || self.process.stdout_open || self.blocked.is_some() {
            let exit_known = exited.is_some();
            let pending = connection.pending();
            // After the exit everything still in the pipe is read, whatever waits for stdin.
            let keeps_up = exit_known || !pending.is_behind;
            let process = &mut self.process;
            if !pending.stdin_open {
                process.half_closed();
            }
            let reading = process.stdout_open && self.blocked.is_none() && keeps_up;
            let event = tokio::select! {
                () = connection.changed() => Event::Changed,
                read = read(&mut process.stdout, &mut process.lines), if reading => Event::Read(read),
                ready = writable(&connection, pending.writes), if pending.writes => Event::Writable(ready),
                () = connection.stdin.reader_gone(), if pending.stdin_open && !exit_known => Event::StdinClosed,
                () = room_of(&self.blocked), if self.blocked.is_some() => Event::Unblocked,
                () = sleep_until(process.half_closed_until), if process.half_closed_until.is_some() && !exit_known => Event::HalfClosedTooLong,
                () = sleep_until(self.settle_at), if self.settle_at.is_some() => Event::Changed,
                () = self.recorder.kill.cancelled(), if !killed && !exit_known => Event::Killed,
                report = process.handle.over(), if !exit_known => Event::Over(report),
            };
            match event {
                Event::Read(Ok(0) | Err(_)) => self.stdout_ended(),
                Event::Read(Ok(_)) => self.take_lines(),
                Event::Writable(Ok(())) => connection.write(),
                Event::Writable(Err(_)) | Event::StdinClosed => connection.stdin_ended(),
                Event::Changed | Event::Unblocked => {}
                Event::HalfClosedTooLong => self.half_closed_too_long(),
                Event::Killed => {
                    killed = true;
                    self.process.handle.kill();
                }
                Event::Over(report) => {
                    exited = report.or_else(|| Some(Arc::new(self.process.handle.unknown_end())));
                }
            }
            batches += self.deliver();
            self.settle();
            if batches >= BATCHES {
                batches = 0;
                tokio::task::yield_now().await;
            }
        }
        let report = exited.expect("the loop goes on until it is there");
        // In a box of its own: a process that runs need not have the room for its end.
        Box::pin(self.finish(report)).await;
    }

    async fn finish(self, report: Arc<ExitReport>) {
        // Nothing of a secret is shown.
        let report = self.recorder.secrets.lock().redact_report(&report);
        let (fault, owes_answers) = self.connection.0.see(|core, _| (core.take_fault(), core.owes_answers()));
        let fault = if self.process.handle.is_superseded() { Some(AgentFault::TakenAway) } else { fault };
        let end = Arc::new(AgentEnd { report, fault });
        self.recorder.running.ended(&end, owes_answers);
        self.publish.tell(Arc::clone(&end));
        for inbox in self.connection.0.close() {
            inbox.send_last(SessionInput::Gone(Arc::clone(&end))).await;
        }
        if self.recorder.user.strong_count() == 0 {
            // All that used it had left before. Others may still know it, but none has its end to record.
            self.process.handle.stop();
        }
    }

    fn take_lines(&mut self) {
        let lines = &mut self.process.lines;
        self.connection.0.see(|core, out| {
            loop {
                match lines.next_line() {
                    Ok(Some(line)) => core.line(line, lines.position(), out),
                    Ok(None) => break,
                    Err(too_long) => core.line_too_long(too_long.limit, out),
                }
            }
        });
    }

    fn stdout_ended(&mut self) {
        if let Ok(Some(line)) = self.process.lines.finish() {
            let end = self.process.lines.position();
            self.connection.0.see(|core, out| core.line(line, end, out));
        }
        self.process.stdout_open = false;
        self.process.half_closed();
    }

    fn half_closed_too_long(&mut self) {
        if self.process.handle.has_ended() {
            // Its pipes are closed by its end, of which the report is late.
            self.process.half_closed_until = Some(Instant::now() + HALF_CLOSED);
            return;
        }
        self.process.half_closed_until = None;
        // Once the ladder has begun, an agent may take its graces to end, and only they bound it.
        if !self.connection.0.stdin.is_closed() {
            let which = if self.process.stdout_open { "stdin" } else { "stdout" };
            self.connection
                .0
                .see(|core, out| core.fail(format!("agent closed its {which} and kept running"), out));
        }
    }

    /// Tells how far what the agent wrote is settled. What is not yet, is looked at again: commits wake no one here.
    fn settle(&mut self) {
        if !self.connection.0.is_kept() {
            return;
        }
        let settled = self.connection.0.settled();
        if let Some(settled) = settled {
            self.process.stdout.committed(settled);
        }
        let is_behind = settled.is_none_or(|settled| settled < self.process.lines.position());
        self.settle_at = is_behind.then(|| Instant::now() + SETTLING);
    }

    /// Hands over what sessions have room for, in order; gives how much that was.
    fn deliver(&mut self) -> usize {
        self.blocked = None;
        let mut batches = 0;
        while let Some(ForSession { route, inbox, input }) = self.connection.0.next_for_session() {
            match inbox.offer(input) {
                Ok(()) => batches += 1,
                Err(NotTaken::Full(input)) => {
                    self.connection.0.put_back(route, input);
                    self.blocked = Some(inbox);
                    break;
                }
                Err(NotTaken::Gone) => self.connection.0.unbind(route),
            }
        }
        batches
    }
}

impl Process {
    /// One of its pipes is closed: it has a moment to end.
    fn half_closed(&mut self) {
        if !self.is_half_closed {
            self.is_half_closed = true;
            self.half_closed_until = Some(Instant::now() + HALF_CLOSED);
        }
    }
}

/// Reads what is there, or waits for something without memory for it.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped.
async fn read(stdout: &mut Stdout, lines: &mut LineBuffer) -> io::Result<usize> {
    // An agent that floods always has something to read, and must not keep the others waiting.
    tokio::task::coop::consume_budget().await;
    loop {
        match stdout.try_read_buf(lines.space()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                lines.rest();
                stdout.readable().await?;
            }
            read => return read,
        }
    }
}

/// # Cancel safety
/// Nothing is lost when the future is dropped.
async fn writable(connection: &AgentConnection, is_awaited: bool) -> io::Result<()> {
    if is_awaited { Box::pin(connection.stdin.writable()).await } else { Ok(()) }
}

/// # Cancel safety
/// Nothing is lost when the future is dropped.
async fn room_of(inbox: &Option<Arc<Inbox>>) {
    if let Some(inbox) = inbox {
        // In a box, as all that is rarely waited for: room for it would be there all the time.
        Box::pin(inbox.room()).await;
    }
}
