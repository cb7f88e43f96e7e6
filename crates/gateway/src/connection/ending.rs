//! The end of a connection: what is still answered, and for how long.

use super::tasks::Done;
use super::{Connection, Input};
use acpd_host::Pending;
use acpd_wire::OwnedId;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;

/// How long requests of a client that is gone may still wait for their own answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

impl Connection {
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
            while !self.tasks.is_empty() {
                // Also what comes of the last ones: a client that does not read must not hold up the end.
                self.tasks.abort_all();
                let done = self.tasks.next().await;
                self.done_last(done).await;
            }
            Input::Drained
        })
    }

    async fn done_last(&mut self, done: Option<Box<Done>>) {
        if let Some(done) = done {
            self.done(*done).await;
        }
    }

    /// Beside the end, which a client that does not read must not hold up. A viewer may have an answer of the session's own
    /// on its way: the first one counts. Where lines have an order they come behind all events (PR-1); for how long, the
    /// transport says.
    pub(super) fn send_last(&self, answers: Vec<(OwnedId, Bytes)>) {
        if answers.is_empty() {
            return;
        }
        let (outbox, owed) = (self.outbox.clone(), self.requests.owed.clone());
        let writing = self.watching.writing.clone();
        writing.close();
        self.host.scope().within(Span::current()).spawn("last answers", async move {
            if outbox.is_in_order() {
                writing.wait().await;
            }
            for (request, line) in answers {
                if outbox.answer(&owed.to(request), line).await.is_err() {
                    return;
                }
            }
        });
    }
}
