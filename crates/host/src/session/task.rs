//! The shell around a session's core: reads the clock, awaits what happens next, and performs what the core decides.
//!
//! The only writer of the session's log. It ends after the agent process is gone, or was left, and the termination record
//! is durable.

mod answers;
mod replaying;
mod working;

use answers::Waiting;
pub(crate) use replaying::Past;
use working::Working;

use super::SessionCommand;
use super::core::{EndOfRun, Ended, Input, Now};
use super::effects::{Act, Effects, Stop};
use super::shared::SharedCore;
use crate::agent::{AgentHandle, RouteId, SessionInput};
use crate::clock;
use crate::error::HostError;
use crate::journal::RunJournal;
use crate::listing::SessionState;
use crate::metrics::SessionShare;
use crate::services::Services;
use crate::termination::{RequestedEnd, chain};
use crate::viewers::Viewers;
use acpd_eventlog::{Appender, WriteError};
use acpd_record::{Cause, TerminationInfo};
use acpd_supervisor::TaskScope;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// What a session task is made of, beside the core.
pub(crate) struct SessionParts {
    /// What an operator is told.
    pub(crate) journal: RunJournal,
    pub(crate) agent: AgentHandle,
    pub(crate) route: RouteId,
    pub(crate) appender: Appender,
    pub(crate) commands: mpsc::Receiver<Box<SessionCommand>>,
    pub(crate) inputs: mpsc::Receiver<SessionInput>,
    pub(crate) ended: watch::Sender<Option<Arc<TerminationInfo>>>,
    pub(crate) viewers: Viewers,
    /// What acpd serves the agent.
    pub(crate) services: Services,
    /// Where services run.
    pub(crate) scope: TaskScope,
}

/// Owns one run of a session.
pub(crate) struct SessionTask {
    core: SharedCore,
    parts: SessionParts,
    /// What the agent may still replay.
    past: Option<Box<Past>>,
    waiting: Waiting,
    working: Working,
    /// What it counts for among the live sessions.
    share: SessionShare,
    /// The log failed; the run ends with this.
    failure: Option<WriteError>,
    /// The shared process is left; the run ends without it.
    released: bool,
}

enum Event {
    Command(Option<Box<SessionCommand>>),
    Agent(Option<SessionInput>),
    Other(Input),
    LogFailed(WriteError),
}

impl SessionTask {
    pub(crate) fn new(core: SharedCore, parts: SessionParts, past: Option<Box<Past>>) -> Self {
        Self {
            core,
            parts,
            past,
            waiting: Waiting::default(),
            working: Working::default(),
            share: SessionShare::new(SessionState::Idle.as_str()),
            failure: None,
            released: false,
        }
    }

    /// In a box, because a future holds what it is given twice: where it came in and where it is used.
    pub(crate) async fn run(mut self: Box<Self>) {
        let mut committed = self.parts.appender.committed();
        let viewers = self.parts.viewers.clone();
        let mut owned = true;
        let end = loop {
            let due = self.core.lock().deadline().map(Instant::from_std);
            let event = tokio::select! {
                biased;
                // No sequence number is ever that high: this ends only with a failure.
                Err(error) = committed.wait_for(u64::MAX), if self.failure.is_none() => Event::LogFailed(error),
                command = self.parts.commands.recv(), if owned => Event::Command(command),
                // Before the agent, which may have always something to say.
                () = sleep_until(due), if due.is_some() => Event::Other(Input::Timer),
                input = self.working.next() => Event::Other(input),
                () = viewers.viewer_left() => Event::Other(Input::ViewerLeft),
                input = self.parts.inputs.recv() => Event::Agent(input),
            };
            match event {
                Event::Command(Some(command)) => self.command(*command).await,
                // The registry and every client dropped it: as good as a shutdown.
                Event::Command(None) => {
                    owned = false;
                    let (cause, initiator) = (Cause::DaemonShutdown, "daemon".to_owned());
                    self.handle([Input::End(RequestedEnd { cause, initiator })]).await;
                }
                Event::Agent(Some(SessionInput::Replayed(lines))) => self.told_before(&lines).await,
                Event::Agent(Some(SessionInput::Messages(messages))) => {
                    let news = self.without_replay(messages).await;
                    self.handle(news.into_iter().map(Input::Agent)).await;
                }
                Event::Agent(Some(SessionInput::Gone(end))) => break Ended::Gone(end),
                Event::Agent(None) => break Ended::Gone(self.parts.agent.ended().await),
                Event::Other(Input::Timer) => {
                    let held = self.held_until_cancel();
                    self.handle(held.into_iter().map(Input::Agent).chain([Input::Timer])).await;
                }
                Event::Other(input) => self.handle([input]).await,
                Event::LogFailed(error) => self.log_failed(error).await,
            }
            if self.released {
                self.parts.agent.unbind(self.parts.route).await;
                break Ended::Released;
            }
        };
        let held = self.held_at_the_end();
        self.handle(held.into_iter().map(Input::Agent)).await;
        // In a box of its own: a session that waits need not have the room for its end.
        Box::pin(self.finish(end)).await;
    }

    /// The time.
    pub(crate) fn now() -> Now {
        Now { at: Instant::now().into_std(), ms: clock::now_ms() }
    }

    async fn command(&mut self, command: SessionCommand) {
        match command {
            SessionCommand::Request { method, params, client, request, reply } => {
                self.waiting.add(request, reply);
                self.handle([Input::Request { request, method, params, client }]).await;
            }
            SessionCommand::Notify { method, params, client } => {
                self.handle([Input::Notify { method, params, client }]).await;
            }
            SessionCommand::Withdraw { request } => self.handle([Input::Withdraw { request }]).await,
            SessionCommand::Answer { number, result, client, reply } => {
                let effects =
                    self.core.lock().handle([Input::Answer { number, result, client }], Self::now());
                let counts = effects.refused.clone().map_or(Ok(()), Err);
                self.perform(effects).await;
                // A client that is gone does not want to know.
                let _gone = reply.send(counts);
            }
            SessionCommand::Attach { reply } => {
                let committed = self.parts.appender.committed().seq();
                let _left = reply.send(self.core.lock().attached(committed));
            }
            SessionCommand::End { request, initiator, done } => {
                self.waiting.for_end(done);
                let requested = RequestedEnd { cause: request.cause(), initiator: initiator.to_string() };
                self.handle([Input::End(requested)]).await;
            }
        }
    }

    /// Lets the core decide, and performs what it says.
    async fn handle(&mut self, inputs: impl IntoIterator<Item = Input>) {
        let (effects, prompted) = {
            let mut core = self.core.lock();
            let turns = core.log().turns();
            (core.handle(inputs, Self::now()), core.log().turns() != turns)
        };
        if prompted {
            self.replay_meets_prompt();
        }
        self.perform(effects).await;
    }

    /// Performs what the core decided; see [`Effects`] for the order.
    async fn perform(&mut self, effects: Effects) {
        let Effects { answers, stop, recording, acts, refused: _ } = effects;
        for answer in answers {
            self.waiting.answer(answer);
        }
        match stop {
            Some(Stop::Agent) => self.parts.agent.stop(),
            Some(Stop::Leave) => self.released = true,
            None => {}
        }
        if !recording.is_empty() && self.failure.is_none() {
            let appended = self.parts.appender.append(recording.into_batch()).await;
            if let Err(error) = appended {
                Box::pin(self.log_failed(error)).await;
            }
        }
        for act in acts {
            self.act(act).await;
        }
        let state = self.core.lock().state();
        let (commands, inputs) = (self.parts.commands.len(), self.parts.inputs.len());
        self.share.show(state.as_str(), commands, inputs);
    }

    async fn act(&mut self, act: Act) {
        let (agent, route) = (&self.parts.agent, self.parts.route);
        // An agent that is gone says so through its inputs.
        let _gone = match act {
            Act::Request { ticket, method, params } => agent.request_for(route, ticket, method, params).await,
            Act::Notify { method, params } => agent.notify(&method, params).await,
            Act::Answer(frame) => agent.answer(frame).await,
            Act::Withdraw(ticket) => agent.withdraw(route, ticket).await,
            Act::Close { params } => return self.close(params).await,
            Act::CloseIsMissing => return self.working.close_is_missing(agent.methods()),
            Act::RememberMissing(method) => return agent.methods().remember_missing(&method),
            Act::Serve { number, service, params } => {
                return self.working.serve(number, service, params, &self.parts);
            }
            Act::WithdrawService(number) => return self.working.withdraw(number),
            Act::KillTerminals(terminals) => return Working::kill(&terminals, &self.parts),
            Act::ReleaseTerminals => return self.working.begin_release(&self.parts),
            Act::Note(note) => return self.parts.journal.note(note),
        };
    }

    async fn log_failed(&mut self, error: WriteError) {
        // The first failure is the cause of all others.
        if self.failure.is_none() {
            self.parts.journal.not_recorded(&error);
            self.failure = Some(error);
        }
        let effects = self.core.lock().handle([Input::LogFailed], Self::now());
        Box::pin(self.perform(effects)).await;
    }

    /// The run is over: the record becomes durable, then everybody is told.
    async fn finish(mut self: Box<Self>, ended: Ended) {
        self.handle([Input::Abandoned]).await;
        self.record_last_output().await;
        let mut committed = self.parts.appender.committed();
        if let Err(error) = committed.wait_for(self.parts.appender.next_seq() - 1).await {
            self.log_failed(error).await;
        }
        let leftovers = match &ended {
            Ended::Gone(end) => end.report.leaked,
            Ended::Released => 0,
        };
        let failure = self.failure.as_ref().map(|error| chain(error));
        let end = EndOfRun { ended, failure, committed: committed.seq() };
        let Effects { answers, recording, acts, .. } =
            self.core.lock().handle([Input::Over(Box::new(end))], Self::now());
        let info = Arc::new(self.core.lock().meta().termination().expect("it was just recorded"));
        // Those that stand in front of the end are handed out first: a viewer that sees the end has them then.
        let (before, after): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|answer| answer.before.is_some());
        for answer in before {
            self.waiting.answer(answer);
        }
        for act in acts {
            self.act(act).await;
        }
        // What is said behind the end is said behind this number, also if it could not be recorded.
        if let Err(error) = self.parts.appender.append_final(recording.into_batch()).await {
            tracing::error!(session = %self.core.lock().id(), error = chain(&error), "the end could not be recorded");
        }
        self.parts.journal.ended(&info, leftovers);
        self.parts.ended.send_replace(Some(Arc::clone(&info)));
        for answer in after {
            self.waiting.answer(answer);
        }
        let error =
            HostError::SessionEnded { id: self.core.lock().id().to_string(), info: Arc::clone(&info) };
        self.parts.commands.close();
        while let Some(command) = self.parts.commands.recv().await {
            Waiting::refuse(*command, &error, info.seq());
        }
        self.waiting.ended(info.seq());
    }
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}
