//! The task that owns one agent process: reads its lines, routes them, writes to its stdin, sees its end.
//!
//! One loop, nothing awaited outside its select. Memory is bounded on both sides: while a session is behind, the
//! agent is not read; while the agent does not read, requests to it are refused, and it is not read either, so
//! that answers to its own requests cannot pile up. Invariant: every request of an agent gets one answer, and
//! every session hears [`SessionInput::Gone`] after everything else, once.

use super::claim::Claims;
use super::health::Running;
use super::read::{Line, read};
use super::{
    AgentAnswer, AgentEnd, AgentFault, Command, FromAgent, History, ReplyTo, RouteId, SessionInput, Ticket,
};
use crate::acp::error_code;
use crate::secrets::Secrets;
use acpd_record::{Snapshot, is_history, is_state, update_kind};
use acpd_supervisor::{ExitReport, Process, ProcessHandle, Stdin, Stdout};
use acpd_wire::{LineBuffer, Outgoing, OwnedId, codes};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Unwritten bytes for an agent that does not read. Over it requests are refused and the agent is not read.
const BACKLOG: usize = 16 * 1024 * 1024;
/// What an agent may say of a session before the host knows it (seen: half a megabyte before `session/new` is
/// answered). Over it the oldest is dropped, with a warning.
const HELD_BYTES: usize = 64 * 1024 * 1024;
/// Lines of a replay that a session is told of at once; between them it hears its clients.
const REPLAYED: usize = 256;
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

pub(super) struct AgentTask {
    process: ProcessHandle,
    stdin: Stdin,
    stdout: Stdout,
    lines: LineBuffer,
    commands: mpsc::Receiver<Box<Command>>,
    publish: watch::Sender<Option<Arc<AgentEnd>>>,
    recorder: RunRecorder,
    /// Requests that we sent.
    requests: Outgoing<ReplyTo>,
    routes: Vec<Route>,
    next_route: u64,
    claims: Claims,
    /// Messages of sessions that are not bound yet, with the session's raw id (None: of no session).
    held: VecDeque<Held>,
    held_bytes: usize,
    /// Lines that the agent has written.
    said: u64,
    /// Sessions whose messages are not held: they were only there to be forked.
    disowned: Vec<Arc<str>>,
    /// Inputs for sessions that are behind; while there are any, nothing is read.
    stuck: VecDeque<(mpsc::Sender<SessionInput>, SessionInput)>,
    /// Bytes for stdin that did not fit.
    backlog: BytesMut,
    fault: Option<AgentFault>,
    /// A line was lost. What follows is read and dropped: it must not pass for all that the agent said.
    torn: bool,
    /// It said something that only acpd says.
    spoke_as_acpd: bool,
    stdout_open: bool,
    stdin_open: bool,
    half_closed_until: Option<Instant>,
}

/// A message of a session that is not bound yet.
struct Held {
    native: Option<Bytes>,
    message: FromAgent,
    bytes: usize,
    /// Its place among the lines of the agent.
    position: u64,
}

struct Route {
    id: RouteId,
    /// The agent's session id as JSON text.
    native: Arc<str>,
    inputs: mpsc::Sender<SessionInput>,
}

enum Event {
    Command(Option<Box<Command>>),
    Read(io::Result<usize>),
    Writable(io::Result<()>),
    StdinClosed,
    Unstuck,
    HalfClosedTooLong,
    KillAll,
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
        Self {
            process: process.handle,
            stdin: process.stdin,
            stdout: process.stdout,
            lines: LineBuffer::new(line_limit),
            commands,
            publish,
            recorder,
            requests: Outgoing::new(),
            routes: Vec::new(),
            next_route: 0,
            claims: Claims::default(),
            held: VecDeque::new(),
            held_bytes: 0,
            said: 0,
            disowned: Vec::new(),
            stuck: VecDeque::new(),
            backlog: BytesMut::new(),
            fault: None,
            torn: false,
            spoke_as_acpd: false,
            stdout_open: true,
            stdin_open: true,
            half_closed_until: None,
        }
    }

    /// In a box, because a future holds what it is given twice: where it came in and where it is used.
    pub(super) async fn run(mut self: Box<Self>) {
        let mut exited = None;
        let mut owned = true;
        let mut killing = false;
        while exited.is_none() || self.stdout_open || !self.stuck.is_empty() {
            let reading = self.stdout_open && self.stuck.is_empty() && self.backlog.len() < BACKLOG;
            let exit_known = exited.is_some();
            let event = tokio::select! {
                command = self.commands.recv(), if owned => Event::Command(command),
                // After the exit everything still in the pipe is read, whatever waits for stdin.
                read = self.stdout.read_buf(self.lines.space()), if reading || (exit_known && self.stdout_open && self.stuck.is_empty()) => Event::Read(read),
                ready = self.stdin.writable(), if !self.backlog.is_empty() && self.stdin_open => Event::Writable(ready),
                () = self.stdin.reader_gone(), if self.stdin_open && !exit_known => Event::StdinClosed,
                () = unstick(self.stuck.front()), if !self.stuck.is_empty() => Event::Unstuck,
                () = sleep_until(self.half_closed_until), if self.half_closed_until.is_some() && !exit_known => Event::HalfClosedTooLong,
                () = self.recorder.kill.cancelled(), if !killing && !exit_known => Event::KillAll,
                report = self.process.exited(), if !exit_known => Event::Exited(report),
            };
            match event {
                Event::Command(Some(command)) => self.perform(*command),
                Event::Command(None) => {
                    owned = false;
                    self.process.stop();
                }
                Event::Read(Ok(0) | Err(_)) => self.stdout_ended(),
                Event::Read(Ok(_)) => self.take_lines(),
                Event::Writable(Ok(())) => self.write_backlog(),
                Event::Writable(Err(_)) | Event::StdinClosed => self.stdin_ended(),
                Event::Unstuck => self.deliver_stuck(),
                Event::HalfClosedTooLong => {
                    self.half_closed_until = None;
                    // Once the ladder has begun, an agent may take its graces to end, and only they bound it.
                    if !self.stdin.is_closed() {
                        let which = if self.stdout_open { "stdin" } else { "stdout" };
                        self.fail(format!("agent closed its {which} and kept running"));
                    }
                }
                Event::KillAll => {
                    killing = true;
                    self.process.kill();
                }
                Event::Exited(report) => exited = Some(report),
            }
        }
        let report = exited.expect("the loop goes on until it is there");
        // In a box of its own: a process that runs need not have the room for its end.
        Box::pin(self.finish(report)).await;
    }

    fn fail(&mut self, message: String) {
        tracing::warn!(pid = self.process.pid(), "{message}");
        self.fault.get_or_insert(AgentFault(message));
        self.process.stop();
    }

    async fn finish(mut self, report: Arc<ExitReport>) {
        // Before anybody sees it.
        let report = self.recorder.secrets.borrow().redact_report(&report);
        let end = Arc::new(AgentEnd { report, fault: self.fault.take() });
        self.recorder.running.ended(&end, !self.requests.is_empty());
        self.publish.send_replace(Some(Arc::clone(&end)));
        // Whoever waits for an answer now learns the end from the closed channel.
        drop(self.requests);
        self.commands.close();
        for route in self.routes {
            // A session that is gone itself needs no word.
            let _gone = route.inputs.send(SessionInput::Gone(Arc::clone(&end))).await;
        }
    }

    fn stdout_ended(&mut self) {
        if let Ok(Some(line)) = self.lines.finish()
            && !self.torn
        {
            let mut batches = Batches::default();
            self.take_line(line, &mut batches);
            self.send_batches(batches);
        }
        self.stdout_open = false;
        self.half_closed_until.get_or_insert(Instant::now() + HALF_CLOSED);
    }

    fn stdin_ended(&mut self) {
        self.stdin_open = false;
        self.backlog.clear();
        self.half_closed_until.get_or_insert(Instant::now() + HALF_CLOSED);
    }

    fn perform(&mut self, command: Command) {
        match command {
            Command::Request { method, params, reply } => {
                if self.backlog.len() >= BACKLOG {
                    self.refuse(reply);
                    return;
                }
                let id = self.requests.open(reply);
                acpd_wire::write_request(&mut self.backlog, id, &method, params.as_deref());
            }
            Command::Notify { method, params } => {
                acpd_wire::write_notification(&mut self.backlog, &method, params.as_deref());
            }
            Command::Answer { frame } => self.backlog.extend_from_slice(&frame),
            Command::Withdraw { route, ticket } => self.withdraw(route, ticket),
            Command::Claim { claim, free } => {
                // A session that is gone without a word has its id no more.
                self.routes.retain(|route| !route.inputs.is_closed());
                if let Some(native) = claim.upgrade() {
                    self.disowned.retain(|disowned| *disowned != native);
                }
                let is_free = self.claims.add(claim, self.routes.iter().map(|route| &*route.native));
                // The id is free again if its asker is gone.
                let _asker_gone = free.send(is_free);
            }
            Command::Bind { claim, inputs, history, route } => {
                let native = claim.into_native();
                self.claims.bound(&native);
                if let History::Drop(known, answered) = history {
                    let told = self.drop_replay(&native, &known, answered);
                    for lines in told.chunks(REPLAYED) {
                        self.stuck.push_back((inputs.clone(), SessionInput::Replayed(lines.into())));
                    }
                }
                self.disowned.retain(|disowned| *disowned != native);
                let id = RouteId(self.next_route);
                self.next_route += 1;
                self.routes.push(Route { id, native, inputs });
                self.release_held();
                let _asker_gone = route.send(id);
            }
            Command::Unbind(id) => self.routes.retain(|route| route.id != id),
            Command::Disown(native) => {
                self.held.retain(|held| held.native.as_deref() != Some(native.as_bytes()));
                self.held_bytes = self.held.iter().map(|held| held.bytes).sum();
                if !self.disowned.contains(&native) {
                    self.disowned.push(native);
                }
            }
            Command::Fault(AgentFault(message)) => self.fail(message),
        }
        self.write_backlog();
    }

    /// Answers without the agent: more than this is not kept for one that does not read.
    fn refuse(&mut self, reply: ReplyTo) {
        let waiting = self.backlog.len();
        match reply {
            ReplyTo::Session { route, ticket } => {
                let mut batches = Batches::default();
                batches.add(route, FromAgent::NotReading { ticket, waiting });
                self.send_batches(batches);
            }
            ReplyTo::Caller(caller) => {
                let error = serde_json::json!({
                    "code": codes::INTERNAL_ERROR,
                    "message": format!("the agent does not read its input; {waiting} bytes are waiting for it"),
                });
                let _gone = caller.send(AgentAnswer {
                    body: error.to_string().into(),
                    is_error: true,
                    position: self.said,
                });
            }
        }
    }

    fn withdraw(&mut self, route: RouteId, ticket: Ticket) {
        let is_it = |reply: &ReplyTo| matches!(reply, ReplyTo::Session { route: r, ticket: t } if (*r, *t) == (route, ticket));
        let id = self.requests.iter().find(|(_, reply)| is_it(reply)).map(|(id, _)| id);
        if let Some(id) = id {
            let params = format!("{{\"requestId\":{id}}}");
            acpd_wire::write_notification(
                &mut self.backlog,
                crate::acp::method::CANCEL_REQUEST,
                Some(params.as_bytes()),
            );
        }
    }

    fn write_backlog(&mut self) {
        while !self.backlog.is_empty() && self.stdin_open {
            match self.stdin.try_write(&self.backlog) {
                Ok(written) => drop(self.backlog.split_to(written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.stdin_ended(),
            }
        }
        if self.backlog.is_empty() {
            // Most agents are asked now and then.
            self.backlog = BytesMut::new();
        }
    }

    fn take_lines(&mut self) {
        let mut batches = Batches::default();
        loop {
            match self.lines.next_line() {
                Ok(Some(_)) if self.torn => {}
                Ok(Some(line)) => self.take_line(line, &mut batches),
                Ok(None) => break,
                Err(too_long) => {
                    self.torn = true;
                    self.fail(format!("agent wrote a line over the limit of {} bytes", too_long.limit));
                }
            }
        }
        self.send_batches(batches);
        self.write_backlog();
    }

    fn take_line(&mut self, line: Bytes, batches: &mut Batches) {
        self.said += 1;
        let (line, kind) = read(line);
        match kind {
            Line::Blank => {}
            Line::Noise => {
                let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
                tracing::debug!(
                    pid = self.process.pid(),
                    line = shown,
                    "the agent wrote something that is no message"
                );
            }
            Line::Forbidden { method } => {
                let pid = self.process.pid();
                match std::mem::replace(&mut self.spoke_as_acpd, true) {
                    false => {
                        tracing::warn!(pid, method, "the agent speaks in acpd's own name; that is dropped")
                    }
                    true => tracing::debug!(pid, method, "the agent speaks in acpd's own name"),
                }
            }
            Line::Stray => {
                tracing::debug!(pid = self.process.pid(), "the agent sent an update that names no session");
            }
            Line::Broken { code, id, detail } => {
                tracing::warn!(pid = self.process.pid(), detail, "the agent sent a broken message");
                let id = id.as_ref().map_or(acpd_wire::RawId::NULL, OwnedId::as_id);
                acpd_wire::write_error(&mut self.backlog, id, code, &detail, None);
            }
            Line::BrokenAnswer { id, detail } => {
                // FR-3: whoever waits for this answer must not wait for ever.
                let error = serde_json::json!({"code": codes::INTERNAL_ERROR, "message": detail}).to_string();
                let answer = AgentAnswer { body: error.into(), is_error: true, position: self.said };
                let reply = self.requests.close(&id.as_id());
                self.pass_answer(reply, answer, batches);
            }
            Line::Answer { id, body, is_error } => {
                let reply = id.and_then(|id| self.requests.close(&id.as_id()));
                let answer = AgentAnswer { body: line.slice(body), is_error, position: self.said };
                self.pass_answer(reply, answer, batches);
            }
            Line::Notification { session, is_update } => {
                let bytes = line.len();
                let native = session.clone().map(|span| line.slice(span));
                self.pass_on(native, FromAgent::Notification { line, session, is_update }, bytes, batches);
            }
            Line::Withdrawal { id } => {
                for route in &self.routes {
                    batches.add(route.id, FromAgent::Withdrawn { id: id.clone() });
                }
            }
            Line::Request { session, id, method } => {
                let bytes = line.len();
                let native = session.clone().map(|span| line.slice(span));
                self.pass_on(native, FromAgent::Request { line, session, id, method }, bytes, batches);
            }
        }
    }

    fn pass_answer(&mut self, reply: Option<ReplyTo>, answer: AgentAnswer, batches: &mut Batches) {
        match reply {
            Some(ReplyTo::Session { route, ticket }) => {
                batches.add(route, FromAgent::Answer { ticket, answer });
            }
            Some(ReplyTo::Caller(caller)) => {
                // What came before it must not come after it: hand over the batches first.
                self.send_batches(std::mem::take(batches));
                let _gone = caller.send(answer);
            }
            None => tracing::debug!(pid = self.process.pid(), "the agent answered a request nobody made"),
        }
    }

    /// Passes a message to its session; one without a session id goes to the only session there is.
    fn pass_on(&mut self, native: Option<Bytes>, message: FromAgent, bytes: usize, batches: &mut Batches) {
        match self.route_of(native.as_deref()) {
            Some(route) => batches.add(route, message),
            None => self.hold(native, message, bytes),
        }
    }

    fn route_of(&self, native: Option<&[u8]>) -> Option<RouteId> {
        let route = match native {
            Some(native) => self.routes.iter().find(|route| route.native.as_bytes() == native),
            None => self.routes.first().filter(|_| self.routes.len() == 1),
        };
        route.map(|route| route.id)
    }

    /// Keeps a message for a session that is about to be bound (UP-7). A request cannot wait: the answer that
    /// names the session may depend on it.
    fn hold(&mut self, native: Option<Bytes>, message: FromAgent, bytes: usize) {
        if let FromAgent::Request { id, method, .. } = &message {
            let (code, text, data) = match &native {
                // Not -32601: an agent may remember that for good.
                Some(native) => {
                    let data = format!("{{\"sessionId\":{}}}", String::from_utf8_lossy(native));
                    (error_code::NOT_FOUND, "session not found".to_owned(), Some(data))
                }
                None => (codes::METHOD_NOT_FOUND, format!("method not found: {method}"), None),
            };
            let data = data.as_ref().map(String::as_bytes);
            acpd_wire::write_error(&mut self.backlog, id.as_id(), code, &text, data);
            return;
        }
        if let Some(native) = &native
            && self.disowned.iter().any(|disowned| disowned.as_bytes() == &native[..])
        {
            return;
        }
        self.held_bytes += bytes;
        self.held.push_back(Held { native, message, bytes, position: self.said });
        while self.held_bytes > HELD_BYTES {
            let Some(Held { bytes, .. }) = self.held.pop_front() else { break };
            self.held_bytes -= bytes;
            tracing::warn!(
                pid = self.process.pid(),
                bytes,
                "dropped a message of a session that nobody knows"
            );
        }
    }

    /// Takes out what an agent replayed of a session before its answer, and gives the lines of the conversation. What it
    /// says of the present state stays, if it is news: the last word of each kind counts.
    fn drop_replay(&mut self, native: &str, known: &Snapshot, answered: u64) -> Vec<Bytes> {
        let mut heard: Vec<String> = Vec::new();
        let mut told = Vec::new();
        let mut is_replay = |held: &Held| match &held.message {
            FromAgent::Notification { line, is_update: true, .. }
                if held.native.as_deref() == Some(native.as_bytes()) =>
            {
                let Some(kind) = update_kind(line) else { return false };
                if is_state(kind) {
                    let is_last = !heard.iter().any(|heard| heard == kind);
                    heard.push(kind.to_owned());
                    return !is_last || !known.would_change(line);
                }
                // Whether what comes behind the answer is a replay is for the session to tell.
                let is_replay = is_history(kind) && held.position < answered;
                if is_replay {
                    told.push(line.clone());
                }
                is_replay
            }
            _ => false,
        };
        for held in std::mem::take(&mut self.held).into_iter().rev() {
            if !is_replay(&held) {
                self.held.push_front(held);
            }
        }
        self.held_bytes = self.held.iter().map(|held| held.bytes).sum();
        told.reverse();
        told
    }

    fn release_held(&mut self) {
        let mut batches = Batches::default();
        for held in std::mem::take(&mut self.held) {
            match self.route_of(held.native.as_deref()) {
                Some(route) => {
                    self.held_bytes -= held.bytes;
                    batches.add(route, held.message);
                }
                None => self.held.push_back(held),
            }
        }
        self.send_batches(batches);
    }

    fn send_batches(&mut self, batches: Batches) {
        for (id, messages) in batches.0 {
            let Some(route) = self.routes.iter().find(|route| route.id == id) else { continue };
            let (inputs, input) = (route.inputs.clone(), SessionInput::Messages(messages));
            self.stuck.push_back((inputs, input));
        }
        self.deliver_stuck();
    }

    fn deliver_stuck(&mut self) {
        while let Some((inputs, input)) = self.stuck.pop_front() {
            match inputs.try_send(input) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(input)) => {
                    self.stuck.push_front((inputs, input));
                    return;
                }
                Err(mpsc::error::TrySendError::Closed(_)) => {
                    self.routes.retain(|route| !route.inputs.same_channel(&inputs));
                }
            }
        }
    }
}

/// Messages by session, in the order in which the sessions were first spoken of.
#[derive(Default)]
struct Batches(Vec<(RouteId, Vec<FromAgent>)>);

impl Batches {
    fn add(&mut self, route: RouteId, message: FromAgent) {
        // Agents speak of one session for long stretches; the last one is nearly always it.
        match self.0.iter_mut().rev().find(|(id, _)| *id == route) {
            Some((_, messages)) => messages.push(message),
            None => self.0.push((route, vec![message])),
        }
    }
}

/// Waits until the session that is behind has room.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped.
async fn unstick(front: Option<&(mpsc::Sender<SessionInput>, SessionInput)>) {
    if let Some((inputs, _)) = front {
        // Closed counts as room: the next try tells.
        let _room = inputs.reserve().await;
    }
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}
