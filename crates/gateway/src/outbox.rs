//! What waits to be written to one client: whole lines, bounded.
//!
//! A line belongs to the connection or to one session. On a pipe or a WebSocket that makes no difference: one queue,
//! in order. Over HTTP each has a stream of its own ([`Streams`]), and an unread one does not hold up another.
//! Full or unread: the sender waits. That is a viewer, whose log waits for it at no cost, or the task of one
//! request; never a session and never the agent.

mod closing;
mod event_id;
mod keeping;
mod recent;
mod sse_event;
mod stream;
mod streams;

pub(crate) use closing::Closing;
pub(crate) use event_id::EventId;
pub(crate) use keeping::Keeping;
pub(crate) use sse_event::sse_event;
pub(crate) use stream::OpenRefused;
pub(crate) use streams::{StreamLimits, Streams};

use crate::owed::Owing;
use acpd_record::SessionId;
use bytes::Bytes;
use std::sync::Arc;
use streams::Offered;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Pieces in flight. Viewers send pieces of a few hundred KiB at most (or one larger frame), so this bounds a
/// client's memory to a few MiB.
const PIECES: usize = 8;

/// Sends to one client.
#[derive(Clone, Debug)]
pub struct Outbox {
    queue: Queue,
    address: Address,
}

#[derive(Clone, Debug)]
enum Queue {
    One(mpsc::Sender<Bytes>),
    Streams(Arc<Sender>),
}

/// Whom a line is for.
#[derive(Clone, Debug)]
enum Address {
    Connection,
    /// An answer that no event precedes: to the session's stream if it has a reader, else to the connection's.
    About(SessionId),
    /// What a viewer writes, in its order.
    Viewer(Arc<Viewing>),
}

/// The senders of a connection's streams, together: when the last is gone, nothing comes any more.
#[derive(Debug)]
struct Sender {
    streams: Arc<Streams>,
    dry: CancellationToken,
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.dry.cancel();
    }
}

/// A viewer's hold on the stream of its session.
#[derive(Debug)]
struct Viewing {
    streams: Arc<Streams>,
    session: SessionId,
}

impl Drop for Viewing {
    fn drop(&mut self) {
        self.streams.unview(&self.session);
    }
}

/// Makes an outbox and the end that a transport writes from.
pub fn outbox() -> (Outbox, mpsc::Receiver<Bytes>) {
    let (sender, receiver) = mpsc::channel(PIECES);
    (Outbox { queue: Queue::One(sender), address: Address::Connection }, receiver)
}

/// Makes an outbox for a client that reads streams; the token is cancelled when no sender is left.
pub(crate) fn streaming_outbox(streams: Arc<Streams>) -> (Outbox, CancellationToken) {
    let dry = CancellationToken::new();
    let sender = Sender { streams, dry: dry.clone() };
    (Outbox { queue: Queue::Streams(Arc::new(sender)), address: Address::Connection }, dry)
}

/// The transport has stopped writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientGone;

impl Outbox {
    /// For what belongs to no session.
    pub(crate) fn connection(&self) -> Self {
        Self { queue: self.queue.clone(), address: Address::Connection }
    }

    /// For an answer about a session that stands behind no event.
    pub(crate) fn about(&self, session: &SessionId) -> Self {
        let address = match &self.queue {
            Queue::One(_) => Address::Connection,
            Queue::Streams(_) => Address::About(session.clone()),
        };
        Self { queue: self.queue.clone(), address }
    }

    /// For the viewer of a session. `created`: the client learns the session's id only now, and opens its stream then.
    /// Else it knows it already: without a reader there, all goes to the connection's stream.
    pub(crate) fn viewer(&self, session: &SessionId, created: bool) -> Self {
        let address = match &self.queue {
            Queue::One(_) => Address::Connection,
            Queue::Streams(sender) => {
                let (streams, session) = (Arc::clone(&sender.streams), session.clone());
                streams.view(&session, created);
                Address::Viewer(Arc::new(Viewing { streams, session }))
            }
        };
        Self { queue: self.queue.clone(), address }
    }

    /// Waits for a reader. A viewer need not read the log before.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn is_read(&self) {
        if let (Queue::Streams(sender), Address::Viewer(viewing)) = (&self.queue, &self.address) {
            while let Some(change) = sender.streams.unread(&viewing.session) {
                // In a box: not every viewer ever waits for this, and each that waits for its log is in the same future.
                Box::pin(change).await;
            }
        }
    }

    /// A viewer's session was removed, and all that there was of it was queued: a client that `watches` it is told so, and
    /// so is each reader of its stream.
    pub(crate) async fn removed(&self, session: &SessionId, watches: bool) -> Result<(), ClientGone> {
        match &self.queue {
            Queue::One(_) if !watches => Ok(()),
            Queue::One(_) => self.send(Closing::Removed.to_line(session)).await,
            Queue::Streams(sender) => {
                sender.streams.removed(session);
                Ok(())
            }
        }
    }

    /// Queues one or more whole lines, waiting for room.
    pub(crate) async fn send(&self, lines: Bytes) -> Result<(), ClientGone> {
        let streams = match &self.queue {
            Queue::One(sender) => return sender.send(lines).await.map_err(|_| ClientGone),
            Queue::Streams(sender) => &sender.streams,
        };
        loop {
            match self.offer(streams, &lines) {
                Offered::Taken => return Ok(()),
                Offered::Closed => return Err(ClientGone),
                Offered::Wait(change) => change.await,
            }
        }
    }

    /// Queues the answer to a request, waiting for room; not if that has been answered meanwhile.
    pub(crate) async fn answer(&self, owing: &Owing, line: Bytes) -> Result<(), ClientGone> {
        let streams = match &self.queue {
            Queue::One(sender) => {
                let place = sender.reserve().await.map_err(|_| ClientGone)?;
                let _answered_before = owing.settle(|| place.send(line), |()| true);
                return Ok(());
            }
            Queue::Streams(sender) => &sender.streams,
        };
        loop {
            let is_taken = |offered: &Offered| matches!(offered, Offered::Taken);
            match owing.settle(|| self.offer(streams, &line), is_taken) {
                None | Some(Offered::Taken) => return Ok(()),
                Some(Offered::Closed) => return Err(ClientGone),
                Some(Offered::Wait(change)) => change.await,
            }
        }
    }

    fn offer(&self, streams: &Streams, lines: &Bytes) -> Offered {
        match &self.address {
            Address::Connection => streams.offer(lines),
            Address::About(session) => streams.offer_about(session, lines),
            Address::Viewer(viewing) => streams.offer_viewed(&viewing.session, lines),
        }
    }
}
