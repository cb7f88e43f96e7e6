//! What the session task does about requests that acpd serves by itself: runs them beside everything else, answers and
//! records them, and ends what a cancelled turn or an ended run leaves.

use super::asking::AgentRequest;
use super::{Outputs, SessionTask, ToAgent};
use crate::acp;
use crate::services::{Served, Service, ServiceError, exit_status};
use acpd_record::EventKind;
use acpd_terminal::{TerminalEvent, TerminalId};
use acpd_wire::{OwnedId, codes, write_error, write_result};
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use std::ops::Range;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Requests that one session has with the services. An agent that asks for more is refused.
const RUNNING: usize = 256;
/// Answers that wait for the session.
const FINISHED: usize = 8;
/// What terminals say, on its way to the session. Full: they leave out what is in the middle, and say how much.
const FEED: usize = 64;

/// A queue that is there from its first use on: most sessions never need it, and there may be thousands.
type Queue<T> = Option<(mpsc::Sender<T>, mpsc::Receiver<T>)>;

fn sender<T>(queue: &mut Queue<T>, bound: usize) -> mpsc::Sender<T> {
    queue.get_or_insert_with(|| mpsc::channel(bound)).0.clone()
}

/// # Cancel safety
/// Nothing is lost when the future is dropped.
async fn next_of<T>(queue: &mut Queue<T>) -> Option<T> {
    queue.as_mut()?.1.recv().await
}

/// A request that is being served.
pub(super) struct Running {
    number: u64,
    id: OwnedId,
    service: Service,
    line: Bytes,
    session: Option<Range<usize>>,
    withdrawn: CancellationToken,
}

impl Drop for Running {
    /// Its work ends with it.
    fn drop(&mut self) {
        self.withdrawn.cancel();
    }
}

/// What is being served, and what comes of it.
#[derive(Default)]
pub(super) struct Serving {
    running: Vec<Running>,
    /// Requests so far.
    asked: u64,
    /// Answers. Full: the service waits with its answer, until the session has written what it has.
    finished: Queue<Box<Finished>>,
    /// What terminals say.
    feed: Queue<TerminalEvent>,
    /// Terminals that the running turn has created.
    of_turn: Vec<TerminalId>,
    /// Told when the terminals of an ending session are gone.
    releasing: Option<oneshot::Receiver<()>>,
}

/// What the services report.
pub(super) enum ServiceEvent {
    Finished(Finished),
    Terminal(TerminalEvent),
}

impl Serving {
    /// Waits for the next answer or the next word of a terminal.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> ServiceEvent {
        tokio::select! {
            biased;
            // Both channels have a sender in this very session.
            Some(finished) = next_of(&mut self.finished) => ServiceEvent::Finished(*finished),
            Some(event) = next_of(&mut self.feed) => ServiceEvent::Terminal(event),
            else => std::future::pending().await,
        }
    }
}

/// The answer to one of them.
pub(super) struct Finished {
    number: u64,
    outcome: Result<Served, ServiceError>,
}

impl SessionTask {
    /// Begins to serve a request.
    pub(super) fn serve(&mut self, service: Service, request: &AgentRequest<'_>, out: &mut Outputs) {
        if self.ending.is_some() {
            self.refuse_agent(request, codes::INTERNAL_ERROR, "the session is ending", out);
            return;
        }
        if self.serving.running.len() >= RUNNING {
            let text = format!("{RUNNING} requests are being served already; wait for an answer");
            self.refuse_agent(request, codes::INTERNAL_ERROR, &text, out);
            return;
        }
        self.serving.asked += 1;
        let (number, withdrawn) = (self.serving.asked, CancellationToken::new());
        let params = acp::params_of(request.line).map(|params| request.line.slice_ref(params));
        let feed = sender(&mut self.serving.feed, FEED);
        let work = self.parts.services.clone().serve(service, params.unwrap_or_default(), feed);
        let (finished, stop) = (sender(&mut self.serving.finished, FINISHED), withdrawn.clone());
        self.parts.scope.spawn("service", async move {
            let outcome =
                stop.run_until_cancelled(work).await.unwrap_or_else(|| Err(ServiceError::withdrawn()));
            // A session that is gone has answered for it.
            let _gone = finished.send(Box::new(Finished { number, outcome })).await;
        });
        self.serving.running.push(Running {
            number,
            id: request.id.clone(),
            service,
            line: request.line.clone(),
            session: request.session.clone(),
            withdrawn,
        });
    }

    pub(super) fn service_event(&mut self, event: ServiceEvent, out: &mut Outputs) {
        match event {
            ServiceEvent::Finished(finished) => self.served(finished, out),
            ServiceEvent::Terminal(event) => self.terminal_said(&event, out),
        }
    }

    /// A request was served.
    fn served(&mut self, finished: Finished, out: &mut Outputs) {
        let Some(place) = self.serving.running.iter().position(|running| running.number == finished.number)
        else {
            return;
        };
        let running = self.serving.running.swap_remove(place);
        let mut frame = BytesMut::new();
        let summary = match &finished.outcome {
            Ok(served) => {
                write_result(&mut frame, running.id.as_id(), &served.result);
                if let Some(created) = &served.created {
                    self.serving.of_turn.push(created.clone());
                }
                served.summary.clone()
            }
            Err(error) => {
                let data = error.data.as_ref().map(Value::to_string);
                let data = data.as_ref().map(String::as_bytes);
                write_error(&mut frame, running.id.as_id(), error.code, &error.message, data);
                json!({"error": {"code": error.code, "message": error.message}})
            }
        };
        if running.service.is_recorded() {
            self.record_served(&running, &summary, out);
        }
        out.to_agent.push(ToAgent::Answer(frame.freeze()));
    }

    fn record_served(&self, running: &Running, summary: &Value, out: &mut Outputs) {
        let params = acp::params_of(&running.line);
        match params.and_then(|params| running.service.recorded_message(params, self.parts.id.as_str())) {
            Some(message) => {
                out.record.object(EventKind::AgentRequest, &json!({"answer": summary, "message": message}));
            }
            None => {
                out.record.request(&running.line, running.session.clone(), self.parts.id.as_json(), summary);
            }
        }
    }

    /// PR-10: the agent takes a request back. What a wait was for goes on.
    pub(super) fn withdraw_service(&mut self, id: &OwnedId) {
        if let Some(running) = self.serving.running.iter().find(|running| running.id == *id) {
            running.withdrawn.cancel();
        }
    }

    /// What a terminal says of itself goes to the log, where viewers and later readers find it (TE-10).
    fn terminal_said(&self, event: &TerminalEvent, out: &mut Outputs) {
        let payload = match event {
            TerminalEvent::Output { terminal, dropped, text } => {
                let mut payload = json!({"terminalId": terminal.as_str(), "output": text});
                if *dropped > 0 {
                    payload["droppedBytes"] = json!(dropped);
                }
                payload
            }
            TerminalEvent::Ended { terminal, report, output } => json!({
                "terminalId": terminal.as_str(), "state": report.state.as_str(),
                "exitStatus": exit_status(report),
                "finalOutput": {"text": output.text, "truncated": output.truncated},
            }),
        };
        out.record.object(EventKind::Terminal, &payload);
    }

    /// A cancelled turn leaves nothing running that it started; real agents forget to kill it.
    pub(super) fn end_terminals_of_turn(&mut self, cancelled: bool) {
        let terminals: Vec<TerminalId> = self.serving.of_turn.drain(..).collect();
        if !cancelled {
            return;
        }
        let services = &self.parts.services;
        for handle in terminals.iter().filter_map(|id| services.terminals.get(&services.owner, id).ok()) {
            self.parts.scope.spawn("terminal of a cancelled turn", async move { drop(handle.kill().await) });
        }
    }

    /// TE-11: a session that ends lets go of its terminals at once; nobody waits for that here.
    pub(super) fn begin_release(&mut self) {
        let services = self.parts.services.clone();
        let (released, releasing) = oneshot::channel();
        self.serving.releasing = Some(releasing);
        self.parts.scope.spawn("release", async move {
            services.terminals.release_all(&services.owner).await;
            // A session whose task was lost does not wait for it.
            let _lost = released.send(());
        });
    }

    /// Waits until nothing of the terminals lives, and records what they said last.
    pub(super) async fn release_terminals(&mut self, out: &mut Outputs) {
        let services = self.parts.services.clone();
        let earlier = self.serving.releasing.take();
        let release = async {
            services.terminals.release_all(&services.owner).await;
            if let Some(earlier) = earlier {
                // A release that was lost has nothing more to wait for.
                let _lost = earlier.await;
            }
        };
        tokio::pin!(release);
        loop {
            tokio::select! {
                biased;
                Some(event) = next_of(&mut self.serving.feed) => self.terminal_said(&event, out),
                () = &mut release => break,
            }
        }
        while let Some((_, feed)) = &mut self.serving.feed
            && let Ok(event) = feed.try_recv()
        {
            self.terminal_said(&event, out);
        }
    }

    /// The agent is gone, and with it all that it had asked for: nothing is read or written for it any more. What its
    /// terminals say last is still heard.
    pub(super) fn abandon_running(&mut self) {
        self.serving.running.clear();
    }

    /// On a process that goes on, nothing of this session stays unanswered.
    pub(super) fn answer_running(&mut self, out: &mut Vec<ToAgent>) {
        for running in std::mem::take(&mut self.serving.running) {
            let mut frame = BytesMut::new();
            let error = ServiceError::withdrawn();
            write_error(&mut frame, running.id.as_id(), error.code, &error.message, None);
            out.push(ToAgent::Answer(frame.freeze()));
        }
    }
}
