//! The end of a connection: what is still answered, and for how long.

use super::tasks::Done;
use super::{Arrival, Connection, Input};
use crate::wire_error::WireError;
use acpd_host::Pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::Span;

/// How long requests of a client that is gone may still wait for their own answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How long viewers may then write what is left to a client on a pipe.
pub const LAST_EVENTS: Duration = Duration::from_secs(4);

impl Connection {
    /// Takes what the transport has read of a client that is gone while it was not its turn: requests begin nothing any more, and are
    /// open until the end answers them (FR-3).
    pub(super) async fn take_late(&mut self, arrivals: &mut mpsc::Receiver<Arrival>) {
        arrivals.close();
        while let Some(arrival) = arrivals.recv().await {
            let input = match self.read(arrival) {
                Input::Request(call) => Input::LateRequest(call),
                input => input,
            };
            self.step(input).await;
        }
    }

    /// Ends the host; what is answered meanwhile is passed on.
    pub(super) fn shut_down(&mut self) -> Pending<'_, ()> {
        Box::pin(async {
            let (host, client) = (self.host.clone(), Arc::clone(&self.client.name));
            // They stop beside the others.
            self.processes.close();
            let shutdown = host.shutdown(&client);
            tokio::pin!(shutdown);
            loop {
                tokio::select! {
                    () = &mut shutdown => break,
                    done = self.tasks.next(), if !self.tasks.is_empty() => self.done_last(done).await,
                }
            }
        })
    }

    /// Agents that were still starting stop with the host, and answers are on their way to the viewers. The rest is ended.
    pub(super) fn drain(&mut self) -> Pending<'_, Input> {
        Box::pin(async {
            let answered = async {
                while !self.tasks.is_empty() {
                    let done = self.tasks.next().await;
                    self.done_last(done).await;
                }
            };
            let _in_time = tokio::time::timeout(LAST_ANSWERS, answered).await;
            while self.tasks.has_requests() {
                // Also what comes of the last ones: a client that does not read must not hold up the end.
                self.tasks.abort_requests();
                let done = self.tasks.next().await;
                self.done_last(done).await;
            }
            // What waits for room and answers no open request, as of a line that is no message, is still sent.
            self.tasks.leave();
            Input::Drained
        })
    }

    async fn done_last(&mut self, done: Option<Box<Done>>) {
        if let Some(done) = done {
            self.done(*done).await;
        }
    }

    /// Answers every request that has no answer so far with `error`, behind all that viewers write: no event follows an answer
    /// (PR-1). Viewers that are not done within the transport's time write no more, and what they held is answered so, too.
    /// Beside the end, which a client that does not read must not hold up.
    pub(super) fn send_last(&self, error: WireError) {
        let (outbox, owed) = (self.outbox.clone(), self.requests.owed.clone());
        let (viewers, gone) = (self.watching.active.clone(), self.watching.gone.clone());
        let last_events = self.watching.last_events;
        viewers.close();
        self.host.scope().within(Span::current()).spawn("last answers", async move {
            if tokio::time::timeout(last_events, viewers.wait()).await.is_err() {
                gone.cancel();
                viewers.wait().await;
            }
            for owing in owed.all() {
                let line = error.to_line(&owing.id);
                if outbox.answer(&owing, line).await.is_err() {
                    return;
                }
            }
        });
    }
}
