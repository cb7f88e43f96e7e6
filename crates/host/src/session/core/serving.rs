//! Requests of the agent that acpd serves by itself, beside everything else: which are being served, and what of them and
//! of terminals is recorded.

use super::forwarding::failed;
use super::{AgentAsks, SessionCore};
use crate::services::{Notice, Served, Service, ServiceError, exit_status};
use crate::session::effects::{Act, Effects};
use acpd_record::{
    AgentRequest, Event, FinalOutput, RawMessage, TerminalEnded, TerminalNews, TerminalOutput,
};
use acpd_terminal::{TerminalEvent, TerminalId};
use acpd_wire::{OwnedId, codes};
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;

/// Requests that one session has with the services. An agent that asks for more is refused.
const RUNNING: usize = 256;

/// A request that is being served.
#[derive(Debug)]
struct Running {
    number: u64,
    id: OwnedId,
    service: Service,
    line: Bytes,
    session: Option<Range<usize>>,
}

/// What is being served.
#[derive(Debug, Default)]
pub(crate) struct Serving {
    running: Vec<Running>,
    /// Requests so far.
    asked: u64,
    /// Requests that are in the log already, and are served again.
    recorded: Vec<OwnedId>,
    /// Requests that a host that is gone had begun to serve, and the terminals that it had created for some.
    begun: Vec<OwnedId>,
    created: Vec<(OwnedId, TerminalId)>,
}

impl Serving {
    /// A host that is gone had recorded the first, begun the second, and created the third, and not answered them.
    pub(super) fn go_on(
        &mut self,
        recorded: Vec<OwnedId>,
        begun: Vec<OwnedId>,
        created: Vec<(OwnedId, TerminalId)>,
    ) {
        (self.recorded, self.begun, self.created) = (recorded, begun, created);
    }

    /// What a request came to that a host that is gone had begun. Files are served again; a command is never started twice.
    fn begun_before(&mut self, id: &OwnedId, service: Service) -> Option<Result<Served, ServiceError>> {
        let place = self.begun.iter().position(|begun| begun == id)?;
        self.begun.swap_remove(place);
        let created = self.created.iter().find(|(request, _)| request == id);
        (service == Service::Create).then(|| match created {
            Some((_, terminal)) => Ok(Served::created(terminal)),
            None => Err(ServiceError::interrupted()),
        })
    }

    /// Whether the agent waits for nothing that acpd does for it.
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }
}

impl SessionCore {
    /// Begins to serve a request.
    pub(super) fn serve(&mut self, service: Service, request: &AgentAsks<'_>, out: &mut Effects) {
        if self.is_ending() {
            self.refuse_agent(request, codes::INTERNAL_ERROR, "the session is ending", out);
            return;
        }
        let serving = &mut self.volatile.serving;
        if serving.running.len() >= RUNNING {
            let text = format!("{RUNNING} requests are being served already; wait for an answer");
            self.refuse_agent(request, codes::INTERNAL_ERROR, &text, out);
            return;
        }
        serving.asked += 1;
        let number = serving.asked;
        serving.running.push(Running {
            number,
            id: request.id.clone(),
            service,
            line: request.line.clone(),
            session: request.session.clone(),
        });
        if let Some(outcome) = serving.begun_before(request.id, service) {
            return self.served(number, outcome, out);
        }
        let (id, line) = (request.id.clone(), request.line.clone());
        out.act(Act::Serve { number, service, id, line, position: self.volatile.continuation.position });
    }

    /// A request was served.
    pub(super) fn served(&mut self, number: u64, outcome: Result<Served, ServiceError>, out: &mut Effects) {
        let running = &mut self.volatile.serving.running;
        let Some(place) = running.iter().position(|running| running.number == number) else { return };
        let running = running.swap_remove(place);
        match outcome {
            Ok(served) => {
                self.record_served(&running, served.summary.raw(), out);
                Self::answer_agent(&running.id, &served.result, out);
            }
            Err(error) => {
                self.record_served(&running, &failed(error.code, &error.message), out);
                if let Some(Notice { title, description }) = &error.notice {
                    let line = acpd_record::warning(&self.facts.id, title, description);
                    self.append(&Event::Update(RawMessage::stored(&line)), out);
                }
                Self::fail_agent(&running.id, &error, out);
            }
        }
    }

    fn record_served(&mut self, running: &Running, answer: &serde_json::value::RawValue, out: &mut Effects) {
        let recorded = &mut self.volatile.serving.recorded;
        let was_recorded = recorded.iter().position(|id| *id == running.id);
        if let Some(place) = was_recorded {
            recorded.swap_remove(place);
        }
        if was_recorded.is_some() || !running.service.is_recorded() {
            return;
        }
        let params = Self::params_of(&running.line);
        match running.service.recorded_message(&params, &self.facts.id) {
            Some(message) => {
                let message = message.raw();
                self.append(&Event::AgentRequest(AgentRequest { answer, message }), out);
            }
            None => self.record_request(&running.line, running.session.clone(), answer, out),
        }
    }

    /// PR-10: the agent takes a request back. What a wait was for goes on.
    pub(super) fn withdraw_service(&mut self, id: &OwnedId, out: &mut Effects) {
        if let Some(running) = self.volatile.serving.running.iter().find(|running| running.id == *id) {
            out.act(Act::WithdrawService(running.number));
        }
    }

    /// What a terminal says of itself goes to the log, where viewers and later readers find it (TE-10).
    pub(super) fn terminal_said(&mut self, event: &TerminalEvent, out: &mut Effects) {
        let news = match event {
            TerminalEvent::Output { terminal, dropped, text } => TerminalNews::Output(TerminalOutput {
                terminal_id: Cow::Borrowed(terminal.as_str()),
                output: Cow::Borrowed(text),
                dropped_bytes: *dropped,
            }),
            TerminalEvent::Ended { terminal, report, output } => TerminalNews::Ended(TerminalEnded {
                terminal_id: Cow::Borrowed(terminal.as_str()),
                state: Cow::Borrowed(report.state.as_str()),
                exit_status: exit_status(report),
                final_output: FinalOutput { text: Cow::Borrowed(&output.text), truncated: output.truncated },
            }),
        };
        self.append(&Event::Terminal(news), out);
    }

    /// On a process that goes on, nothing of this session stays unanswered.
    pub(super) fn answer_running(&mut self, out: &mut Effects) {
        for running in std::mem::take(&mut self.volatile.serving.running) {
            out.act(Act::WithdrawService(running.number));
            Self::fail_agent(&running.id, &ServiceError::withdrawn(), out);
        }
    }
}
