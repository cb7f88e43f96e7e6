//! What a connection watches: its viewers, and the questions that its client was asked.

use crate::capabilities::ClientCapabilities;
use crate::outbox::Outbox;
use crate::owed::Owing;
use crate::questions::{AskedQuestion, Questions};
use crate::viewer::{Answer, Attachment, Viewer, ViewerHandle};
use acpd_host::{Host, SessionHandle};
use acpd_record::{ConnectionId, SessionId};
use acpd_wire::OwnedId;
use bytes::Bytes;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Span;

/// The sessions that a client watches.
#[derive(Default)]
pub(super) struct Watching {
    viewers: HashMap<SessionId, Watched>,
    /// What the client was asked and has not answered.
    pub(super) questions: Questions,
    /// Cancelled when the client is gone and its viewers have nothing to do any more.
    pub(super) gone: CancellationToken,
    /// The viewers that may still write, also those that the connection has let go.
    pub(super) active: TaskTracker,
    /// How long they may write what is left at the end.
    pub(super) last_events: Duration,
}

/// A session that the client is attached to.
struct Watched {
    viewer: ViewerHandle,
    /// The run that it is attached to; None if it only reads, or has left.
    live: Option<SessionHandle>,
    /// How often the client attached.
    attachments: u64,
}

impl Watched {
    /// Its run is over, or the client has left, and all that was promised was written.
    fn is_over(&self) -> bool {
        let ended = self.live.as_ref().is_none_or(|live| live.ended_with().is_some());
        !self.viewer.is_there()
            || (ended && self.viewer.finished() == self.attachments && self.viewer.is_idle())
    }
}

impl Watching {
    pub(super) fn new(last_events: Duration) -> Self {
        Self { last_events, ..Self::default() }
    }

    /// What the client answers with the response `id`.
    pub(super) fn asked(&self, id: &OwnedId) -> AskedQuestion {
        id.as_raw().parse().map_or(AskedQuestion::Never, |id| self.questions.answered(id))
    }

    /// The viewer of a session that the client is attached to.
    pub(super) fn viewer(&self, session: &SessionId) -> Option<ViewerHandle> {
        self.viewers.get(session).map(|watched| watched.viewer.clone())
    }

    /// Sessions that need not be watched any more, but for this one.
    pub(super) fn over(&self, but: &SessionId) -> Vec<SessionId> {
        let over = self.viewers.iter().filter(|(session, watched)| *session != but && watched.is_over());
        over.map(|(session, _)| session.clone()).collect()
    }

    pub(super) fn forget(&mut self, session: &SessionId) {
        self.viewers.remove(session);
    }

    /// Attached already: the same viewer goes on from another place, so that nothing is written twice.
    pub(super) async fn attach(
        &mut self,
        host: &Host,
        (session, attachment): (SessionId, Attachment),
        (client, via): (ClientCapabilities, ConnectionId),
        outbox: Outbox,
    ) {
        let live = attachment.live.clone();
        match self.viewers.get_mut(&session) {
            Some(watched) if watched.viewer.is_there() => {
                watched.live = live;
                watched.attachments += 1;
                let _gone = watched.viewer.follow(attachment).await;
            }
            _ => {
                let (questions, gone) = (self.questions.clone(), self.gone.clone());
                let (viewer, task) = Viewer::new(&session, via, attachment, outbox, client, questions, gone);
                self.viewers.insert(session, Watched { viewer, live, attachments: 1 });
                let scope = host.scope().within(Span::current());
                scope.spawn_lasting("viewer", Box::new(task).run(self.active.token()));
            }
        }
    }

    /// Stops watching a session; the receiver is told once `line` was written behind what the viewer has written.
    pub(super) async fn leave(
        &mut self,
        session: &SessionId,
        owing: Owing,
        line: Bytes,
    ) -> Option<oneshot::Receiver<()>> {
        let watched = self.viewers.get_mut(session)?;
        watched.live = None;
        watched.viewer.leave(owing, line).await.ok()
    }
}

/// Writes an answer behind the events that precede it, through the viewer of its session if the client has one.
pub(super) async fn write_answer(
    outbox: &Outbox,
    viewer: Option<&ViewerHandle>,
    owing: Owing,
    after: u64,
    line: Bytes,
) {
    if let Some(viewer) = viewer
        && let Ok(slot) = viewer.reply_slot().await
    {
        let (answer, told) = Answer::new(owing.clone(), after, line.clone()).told();
        slot.fill(answer);
        if told.await.is_ok() {
            return;
        }
    }
    // A client that is gone reads nothing.
    let _gone = outbox.answer(&owing, line).await;
}
