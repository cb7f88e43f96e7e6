//! The task that owns one agent process: the shell around its core. Reads lines, writes to its stdin, sees its end.
//!
//! One loop, nothing awaited outside its select. Memory is bounded on both sides: while a session is behind, the
//! agent is not read; while the agent does not read, requests to it are refused, and it is not read either.
//! Invariant: every session hears [`SessionInput::Gone`] after everything else, once.

use super::core::{AgentCore, CallNumber, Delivery, Effects, For, Note};
use super::health::Running;
use super::{AgentAnswer, AgentEnd, AgentFault, Command, ReplyTo, RouteId, SessionInput};
use crate::secrets::Secrets;
use acpd_supervisor::{ExitReport, Process, ProcessHandle, Stdin, Stdout};
use acpd_wire::LineBuffer;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// An agent that closed stdin or stdout and did not exit gets this long to follow (SU-8).
const HALF_CLOSED: Duration = Duration::from_secs(1);

/// What is known of a process beside its connection.
pub(super) struct RunRecorder {
    /// What the record of its end must not tell.
    pub(super) secrets: watch::Receiver<Secrets>,
    /// It counts as running.
    pub(super) running: Running,
    /// Cancelled when the process gets its graces no more.
    pub(super) kill: CancellationToken,
}

/// The process and its pipes.
struct Pipes {
    process: ProcessHandle,
    stdin: Stdin,
    stdout: Stdout,
    lines: LineBuffer,
    stdout_open: bool,
    stdin_open: bool,
    half_closed_until: Option<Instant>,
}

/// Where the core's deliveries go.
#[derive(Default)]
struct Recipients {
    sessions: Vec<(RouteId, mpsc::Sender<SessionInput>)>,
    calls: HashMap<CallNumber, oneshot::Sender<AgentAnswer>>,
    next_call: u64,
    /// Inputs for sessions that are behind; while there are any, nothing is read.
    stuck: VecDeque<(RouteId, SessionInput)>,
}

pub(super) struct AgentTask {
    core: AgentCore,
    pipes: Pipes,
    recipients: Recipients,
    commands: mpsc::Receiver<Box<Command>>,
    publish: watch::Sender<Option<Arc<AgentEnd>>>,
    recorder: RunRecorder,
}

enum Event {
    Command(Option<Box<Command>>),
    Read(io::Result<usize>),
    Writable(io::Result<()>),
    StdinClosed,
    Unstuck,
    HalfClosedTooLong,
    Killed,
    Exited(Arc<ExitReport>),
}

impl AgentTask {
    pub(super) fn new(
        process: Process,
        line_limit: usize,
        commands: mpsc::Receiver<Box<Command>>,
        publish: watch::Sender<Option<Arc<AgentEnd>>>,
        recorder: RunRecorder,
    ) -> Self {
        let pipes = Pipes {
            process: process.handle,
            stdin: process.stdin,
            stdout: process.stdout,
            lines: LineBuffer::new(line_limit),
            stdout_open: true,
            stdin_open: true,
            half_closed_until: None,
        };
        Self { core: AgentCore::new(), pipes, recipients: Recipients::default(), commands, publish, recorder }
    }

    /// In a box, because a future holds what it is given twice: where it came in and where it is used.
    pub(super) async fn run(mut self: Box<Self>) {
        let mut exited = None;
        let mut owned = true;
        let mut killed = false;
        while exited.is_none() || self.pipes.stdout_open || !self.recipients.stuck.is_empty() {
            let exit_known = exited.is_some();
            // After the exit everything still in the pipe is read, whatever waits for stdin.
            let keeps_up = exit_known || !self.core.is_behind();
            let reading = self.pipes.stdout_open && self.recipients.stuck.is_empty() && keeps_up;
            let pipes = &mut self.pipes;
            let event = tokio::select! {
                command = self.commands.recv(), if owned => Event::Command(command),
                read = pipes.stdout.read_buf(pipes.lines.space()), if reading => Event::Read(read),
                ready = pipes.stdin.writable(), if pipes.stdin_open && !self.core.unwritten().is_empty() => Event::Writable(ready),
                () = pipes.stdin.reader_gone(), if pipes.stdin_open && !exit_known => Event::StdinClosed,
                () = self.recipients.unstick(), if !self.recipients.stuck.is_empty() => Event::Unstuck,
                () = sleep_until(pipes.half_closed_until), if pipes.half_closed_until.is_some() && !exit_known => Event::HalfClosedTooLong,
                () = self.recorder.kill.cancelled(), if !killed && !exit_known => Event::Killed,
                report = pipes.process.exited(), if !exit_known => Event::Exited(report),
            };
            match event {
                Event::Command(Some(command)) => self.command(*command),
                Event::Command(None) => {
                    owned = false;
                    self.pipes.process.stop();
                }
                Event::Read(Ok(0) | Err(_)) => self.stdout_ended(),
                Event::Read(Ok(_)) => self.take_lines(),
                Event::Writable(Ok(())) => self.write(),
                Event::Writable(Err(_)) | Event::StdinClosed => self.stdin_ended(),
                Event::Unstuck => self.deliver(),
                Event::HalfClosedTooLong => self.half_closed_too_long(),
                Event::Killed => {
                    killed = true;
                    self.pipes.process.kill();
                }
                Event::Exited(report) => exited = Some(report),
            }
        }
        let report = exited.expect("the loop goes on until it is there");
        // In a box of its own: a process that runs need not have the room for its end.
        Box::pin(self.finish(report)).await;
    }

    async fn finish(mut self, report: Arc<ExitReport>) {
        // Before anybody sees it.
        let report = self.recorder.secrets.borrow().redact_report(&report);
        let end = Arc::new(AgentEnd { report, fault: self.core.take_fault() });
        self.recorder.running.ended(&end, self.core.owes_answers());
        self.publish.send_replace(Some(Arc::clone(&end)));
        // A caller that waits for an answer now learns the end from the closed channel.
        drop(self.recipients.calls);
        self.commands.close();
        for (_, inputs) in self.recipients.sessions {
            // A session that is gone itself needs no word.
            let _gone = inputs.send(SessionInput::Gone(Arc::clone(&end))).await;
        }
    }

    fn command(&mut self, command: Command) {
        let mut out = Effects::default();
        match command {
            Command::Request { method, params, reply } => {
                let whom = self.recipients.whom(reply);
                self.core.request(whom, &method, params.as_deref(), &mut out);
            }
            Command::Notify { method, params } => self.core.notify(&method, params.as_deref()),
            Command::Answer { frame } => self.core.answer(&frame),
            Command::Withdraw { route, ticket } => self.core.withdraw(route, ticket),
            Command::Claim { claim, free } => {
                // A session that is gone without a word has its id no more.
                for route in self.recipients.drop_closed() {
                    self.core.unbind(route);
                }
                // The id is free again if its asker is gone.
                let _asker_gone = free.send(self.core.claim(claim));
            }
            Command::Bind { claim, inputs, history, route } => {
                let id = self.core.bind(claim, history, &mut out);
                self.recipients.sessions.push((id, inputs));
                let _asker_gone = route.send(id);
            }
            Command::Unbind(id) => {
                self.recipients.sessions.retain(|(route, _)| *route != id);
                self.core.unbind(id);
            }
            Command::Disown(native) => self.core.disown(native),
            Command::Fault(AgentFault(message)) => self.core.fail(message, &mut out),
        }
        self.perform(out);
    }

    fn take_lines(&mut self) {
        let mut out = Effects::default();
        loop {
            match self.pipes.lines.next_line() {
                Ok(Some(line)) => self.core.line(line, &mut out),
                Ok(None) => break,
                Err(too_long) => self.core.line_too_long(too_long.limit, &mut out),
            }
        }
        self.perform(out);
    }

    fn stdout_ended(&mut self) {
        if let Ok(Some(line)) = self.pipes.lines.finish() {
            let mut out = Effects::default();
            self.core.line(line, &mut out);
            self.perform(out);
        }
        self.pipes.stdout_open = false;
        self.pipes.half_closed_until.get_or_insert(Instant::now() + HALF_CLOSED);
    }

    fn stdin_ended(&mut self) {
        self.core.stdin_ended();
        self.pipes.stdin_open = false;
        self.pipes.half_closed_until.get_or_insert(Instant::now() + HALF_CLOSED);
    }

    fn half_closed_too_long(&mut self) {
        self.pipes.half_closed_until = None;
        // Once the ladder has begun, an agent may take its graces to end, and only they bound it.
        if !self.pipes.stdin.is_closed() {
            let which = if self.pipes.stdout_open { "stdin" } else { "stdout" };
            let mut out = Effects::default();
            self.core.fail(format!("agent closed its {which} and kept running"), &mut out);
            self.perform(out);
        }
    }

    fn perform(&mut self, effects: Effects) {
        let Effects { deliveries, stop, notes, .. } = effects.complete();
        notes.iter().for_each(|note| self.tell(note));
        if stop {
            self.pipes.process.stop();
        }
        for delivery in deliveries {
            match delivery {
                Delivery::Session(route, input) => self.recipients.stuck.push_back((route, input)),
                Delivery::Call(call, answer) => {
                    self.deliver();
                    let caller = self.recipients.calls.remove(&call);
                    // A caller that is gone does not wait.
                    let _gone = caller.map(|caller| caller.send(answer));
                }
            }
        }
        self.deliver();
        self.write();
    }

    /// Hands over what sessions have room for.
    fn deliver(&mut self) {
        for gone in self.recipients.deliver() {
            self.core.unbind(gone);
        }
    }

    fn write(&mut self) {
        while self.pipes.stdin_open && !self.core.unwritten().is_empty() {
            match self.pipes.stdin.try_write(self.core.unwritten()) {
                Ok(written) => self.core.written(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.stdin_ended(),
            }
        }
    }

    fn tell(&self, note: &Note) {
        let pid = self.pipes.process.pid();
        match note {
            Note::Noise(line) => tracing::debug!(pid, line, "the agent wrote something that is no message"),
            Note::OwnName { method, first: true } => {
                tracing::warn!(pid, method, "the agent speaks in acpd's own name; that is dropped");
            }
            Note::OwnName { method, first: false } => {
                tracing::debug!(pid, method, "the agent speaks in acpd's own name");
            }
            Note::Stray => tracing::debug!(pid, "the agent sent an update that names no session"),
            Note::Broken(detail) => tracing::warn!(pid, detail, "the agent sent a broken message"),
            Note::Unasked => tracing::debug!(pid, "the agent answered a request that was not made"),
            Note::Dropped(bytes) => tracing::warn!(pid, bytes, "dropped a message of an unknown session"),
            Note::Failed(message) => tracing::warn!(pid, "{message}"),
        }
    }
}

impl Recipients {
    fn whom(&mut self, reply: ReplyTo) -> For {
        match reply {
            ReplyTo::Session { route, ticket } => For::Session { route, ticket },
            ReplyTo::Caller(caller) => {
                let call = CallNumber(self.next_call);
                self.next_call += 1;
                self.calls.insert(call, caller);
                For::Call(call)
            }
        }
    }

    /// Forgets the sessions whose tasks are gone.
    fn drop_closed(&mut self) -> Vec<RouteId> {
        self.sessions.extract_if(.., |(_, inputs)| inputs.is_closed()).map(|(route, _)| route).collect()
    }

    /// Hands over what sessions have room for; gives those that are gone.
    fn deliver(&mut self) -> Vec<RouteId> {
        let mut gone = Vec::new();
        while let Some((route, input)) = self.stuck.pop_front() {
            let Some((_, inputs)) = self.sessions.iter().find(|(id, _)| *id == route) else { continue };
            match inputs.try_send(input) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(input)) => {
                    self.stuck.push_front((route, input));
                    break;
                }
                Err(mpsc::error::TrySendError::Closed(_)) => {
                    self.sessions.retain(|(id, _)| *id != route);
                    gone.push(route);
                }
            }
        }
        gone
    }

    /// Waits until the session that is behind has room.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    async fn unstick(&self) {
        let Some((route, _)) = self.stuck.front() else { return };
        if let Some((_, inputs)) = self.sessions.iter().find(|(id, _)| id == route) {
            // Closed counts as room: the next try tells.
            let _room = inputs.reserve().await;
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}
