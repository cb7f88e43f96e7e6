//! What a session has running beside it: requests of the agent that acpd serves, and terminals.

use super::{SessionParts, SessionTask};
use crate::agent::{AgentMethods, Ticket};
use crate::services::{Served, Service, ServiceError};
use crate::session::core::Input;
use acpd_terminal::{TerminalEvent, TerminalId};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

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

/// The answer of a service.
struct Finished {
    number: u64,
    outcome: Result<Served, ServiceError>,
}

/// What runs, and what comes of it.
#[derive(Default)]
pub(super) struct Working {
    /// Requests that are served, by their numbers; each ends when its token is cancelled.
    running: Vec<(u64, CancellationToken)>,
    /// Answers. Full: the service waits with its answer, until the session has written what it has.
    finished: Queue<Box<Finished>>,
    /// What terminals say.
    feed: Queue<TerminalEvent>,
    /// Told when the terminals of an ending session are gone.
    releasing: Option<oneshot::Receiver<()>>,
    /// The method by which the agent was asked to close its session.
    close_method: Option<&'static str>,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.running.iter().for_each(|(_, withdrawn)| withdrawn.cancel());
    }
}

impl Working {
    /// Waits for the next answer or the next word of a terminal.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Input {
        tokio::select! {
            biased;
            // Both channels have a sender in this very session.
            Some(finished) = next_of(&mut self.finished) => {
                let Finished { number, outcome } = *finished;
                self.running.retain(|(running, _)| *running != number);
                Input::Served { number, outcome }
            }
            Some(event) = next_of(&mut self.feed) => Input::Terminal(event),
            else => std::future::pending().await,
        }
    }

    pub(super) fn serve(&mut self, number: u64, service: Service, params: Bytes, parts: &SessionParts) {
        let work = parts.services.clone().serve(service, params, sender(&mut self.feed, FEED));
        let (finished, withdrawn) = (sender(&mut self.finished, FINISHED), CancellationToken::new());
        let stop = withdrawn.clone();
        parts.scope.spawn("service", async move {
            let outcome =
                stop.run_until_cancelled(work).await.unwrap_or_else(|| Err(ServiceError::withdrawn()));
            // A session that is gone has answered for it.
            let _gone = finished.send(Box::new(Finished { number, outcome })).await;
        });
        self.running.push((number, withdrawn));
    }

    pub(super) fn withdraw(&mut self, number: u64) {
        self.running.iter().filter(|(running, _)| *running == number).for_each(|(_, stop)| stop.cancel());
    }

    /// Nothing is served any more.
    fn abandon(&mut self) {
        self.running.drain(..).for_each(|(_, withdrawn)| withdrawn.cancel());
    }

    pub(super) fn close_is_missing(&self, methods: &AgentMethods) {
        if let Some(method) = self.close_method {
            methods.remember_missing(method);
        }
    }

    pub(super) fn kill(terminals: &[TerminalId], parts: &SessionParts) {
        let services = &parts.services;
        for handle in terminals.iter().filter_map(|id| services.terminals.get(&services.owner, id).ok()) {
            parts.scope.spawn("terminal of a cancelled turn", async move { drop(handle.kill().await) });
        }
    }

    /// TE-11: a session that ends releases its terminals at once; that is not waited for here.
    pub(super) fn begin_release(&mut self, parts: &SessionParts) {
        let services = parts.services.clone();
        let (released, releasing) = oneshot::channel();
        self.releasing = Some(releasing);
        parts.scope.spawn("release", async move {
            services.terminals.release_all(&services.owner).await;
            // A session whose task was lost does not wait for it.
            let _lost = released.send(());
        });
    }
}

impl SessionTask {
    /// Asks the agent to close its session, if it can.
    pub(super) async fn close(&mut self, params: Bytes) {
        let agent = &self.parts.agent;
        self.working.close_method = agent.close_method();
        match self.working.close_method {
            Some(method) => {
                // An agent that is gone says so through its inputs.
                let request =
                    agent.request_for(self.parts.route, Ticket::Close, method.to_owned(), Some(params));
                let _gone = request.await;
            }
            None => Box::pin(self.handle([Input::CannotClose])).await,
        }
    }

    /// TE-10, TE-11: nothing of the session's terminals lives when it has ended, and what they said last is in the log. The
    /// agent is gone, and with it all that it had asked for.
    pub(super) async fn record_last_output(&mut self) {
        self.working.abandon();
        let services = self.parts.services.clone();
        let earlier = self.working.releasing.take();
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
                Some(event) = next_of(&mut self.working.feed) => said.push(Input::Terminal(event)),
                () = &mut release => break,
            }
        }
        while let Some((_, feed)) = &mut self.working.feed
            && let Ok(event) = feed.try_recv()
        {
            said.push(Input::Terminal(event));
        }
        self.handle(said).await;
    }
}
