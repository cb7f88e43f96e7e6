//! The session task: awaits what a live session cannot have done by those that use it. Time, replays of its agent, the
//! output of terminals, a failure of its log, and the end of its run.
//!
//! It ends after the agent process is gone, or was left, and the termination record is durable.

use super::core::{Ended, Input};
use super::live::LiveSession;
use super::performer::{LastWords, Orders, Performer};
use super::replaying::Past;
use crate::agent::{AgentHandle, FromAgent, SessionInput, SessionInputs};
use crate::chain::chain;
use crate::checkpoints;
use crate::viewers::Viewers;
use acpd_eventlog::{Committed, EventLog, WriteError};
use acpd_supervisor::sleep_until;
use acpd_terminal::TerminalEvent;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Sees one run of a session to its end.
pub(crate) struct SessionTask {
    live: Arc<LiveSession>,
    inputs: SessionInputs,
    /// What the agent may still replay.
    past: Option<Box<Past>>,
    /// What terminals say.
    feed: Option<mpsc::Receiver<TerminalEvent>>,
    viewers: Viewers,
    committed: Committed,
    /// For the checkpoint at the end.
    log: EventLog,
}

enum Event {
    Agent(Option<SessionInput>),
    Other(Input),
    Due,
    LogFailed(WriteError),
    Changed,
}

impl SessionTask {
    pub(crate) fn new(
        live: Arc<LiveSession>,
        inputs: SessionInputs,
        past: Option<Box<Past>>,
        viewers: Viewers,
        (log, committed): (EventLog, Committed),
    ) -> Self {
        Self { live, inputs, past, feed: None, viewers, committed, log }
    }

    /// In a box, because a future holds what it is given twice: where it came in and where it is used.
    pub(crate) async fn run(mut self: Box<Self>) {
        let ended = loop {
            self.live.idle().await;
            // A run that was lost to a panic is found at the next start.
            let Some(Orders { due, feed, released, log_failed }) = self.live.with(Performer::orders) else {
                return;
            };
            self.feed = feed.or(self.feed);
            if released {
                self.live.with(|run| run.parts().agent.unbind(run.parts().route));
                break Ended::Released;
            }
            let event = tokio::select! {
                biased;
                error = self.committed.failed(), if !log_failed => Event::LogFailed(error),
                // Before the agent, which may have always something to say.
                () = sleep_until(due.map(Instant::from_std)), if due.is_some() => Event::Due,
                Some(said) = next_of(&mut self.feed) => Event::Other(Input::Terminal(said)),
                () = self.viewers.viewer_left() => Event::Other(Input::ViewerLeft),
                () = self.live.changed() => Event::Changed,
                input = self.inputs.recv() => Event::Agent(input),
            };
            self.live.idle().await;
            match event {
                Event::Agent(Some(SessionInput::Gone(end))) => break Ended::Gone(end),
                Event::Agent(None) => match self.agent() {
                    Some(agent) => break Ended::Gone(Box::pin(agent.ended()).await),
                    None => return,
                },
                // In a box, as all that is rare: a session that waits need not have the room for it.
                Event::Agent(Some(input)) => Box::pin(self.agent_says(input)).await,
                Event::Other(input) => {
                    Box::pin(self.live.room()).await;
                    self.live.with(|run| run.handle([input]));
                }
                Event::Due => self.time_passed(),
                Event::LogFailed(error) => drop(self.live.with(|run| run.log_failed(error))),
                Event::Changed if self.live.was_abandoned() => drop(self.live.with(Performer::abandoned)),
                Event::Changed => {}
            }
        };
        Box::pin(self.finish(ended)).await;
    }

    async fn agent_says(&mut self, input: SessionInput) {
        self.live.room().await;
        match input {
            SessionInput::Replayed(lines) => self.told_before(&lines).await,
            SessionInput::Messages(messages) => {
                let last = messages.iter().rev().find_map(FromAgent::position);
                let news = self.without_replay(messages).await;
                // What is held is taken up later, and all behind it.
                let heard = last.filter(|_| self.past.as_ref().is_none_or(|past| !past.holds()));
                self.live.with(|run| {
                    run.handle(news.into_iter().map(Input::Agent));
                    heard.into_iter().for_each(|position| run.heard(position));
                });
            }
            SessionInput::Gone(_) => {}
        }
        let (waiting, is_sifting) = (self.inputs.len(), self.past.is_some());
        self.live.with(|run| {
            run.show_inputs(waiting);
            if !is_sifting {
                run.sift_no_more();
            }
        });
        self.inputs.done();
    }

    fn time_passed(&mut self) {
        let held = self.held_until_cancel();
        self.live.with(|run| run.handle(held.into_iter().map(Input::Agent).chain([Input::Timer])));
    }

    fn agent(&self) -> Option<AgentHandle> {
        self.live.with(|run| run.parts().agent.clone())
    }

    pub(super) fn live(&self) -> &LiveSession {
        &self.live
    }

    pub(super) fn past(&mut self) -> &mut Option<Box<Past>> {
        &mut self.past
    }

    /// The run is over: the record becomes durable, then all that wait are told.
    async fn finish(mut self: Box<Self>, ended: Ended) {
        let live = Arc::clone(&self.live);
        let held = self.held_at_the_end();
        live.with(|run| run.begin_to_close(held));
        self.record_last_output().await;
        let last = live.with(|run| run.parts().appender.as_ref().map(|appender| appender.next_seq() - 1));
        if let Err(error) = self.committed.wait_for(last.flatten().unwrap_or_default()).await {
            live.with(|run| run.log_failed(error));
        }
        let leftovers = match &ended {
            Ended::Gone(end) => end.report.leaked,
            Ended::Released => 0,
        };
        let committed = self.committed.seq();
        let Some(LastWords { info, batch, appender, answers }) = live.with(|run| run.over(ended, committed))
        else {
            return;
        };
        // What is said behind the end is said behind its number, also if it could not be recorded.
        let mut recorded = None;
        if let Some(appender) = appender {
            match appender.append_final(batch).await {
                Ok(events) => recorded = Some(*events.end()),
                Err(error) => tracing::error!(error = chain(&error), "the end could not be recorded"),
            }
        }
        let Some(run) = live.end() else { return };
        if let Some(core) = run.told(info, answers, leftovers)
            && recorded == Some(core.log().last_seq())
        {
            checkpoints::keep(&self.log, core.id(), core.log());
        }
    }

    /// TE-10, TE-11: nothing of the session's terminals lives when it has ended, and what they said last is in the log. The
    /// agent is gone, and with it all that it had asked for.
    async fn record_last_output(&mut self) {
        let prepared = self.live.with(|run| {
            let feed = run.orders().feed;
            (run.parts().services.clone(), run.release(), feed)
        });
        let Some((services, earlier, feed)) = prepared else { return };
        let mut feed = feed.or(self.feed.take());
        let release = async {
            services.terminals.release_all(&services.owner).await;
            if let Some(earlier) = earlier {
                // A release that was lost has nothing more to wait for.
                let _lost = earlier.await;
            }
        };
        tokio::pin!(release);
        let mut said = Vec::new();
        loop {
            tokio::select! {
                biased;
                Some(event) = next_of(&mut feed) => said.push(Input::Terminal(event)),
                () = &mut release => break,
            }
        }
        while let Some(event) = feed.as_mut().and_then(|feed| feed.try_recv().ok()) {
            said.push(Input::Terminal(event));
        }
        self.live.with(|run| run.last_output(said));
    }
}

/// # Cancel safety
/// Nothing is lost when the future is dropped.
async fn next_of(feed: &mut Option<mpsc::Receiver<TerminalEvent>>) -> Option<TerminalEvent> {
    match feed {
        Some(feed) => feed.recv().await,
        None => std::future::pending().await,
    }
}
