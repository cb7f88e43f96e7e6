//! What waits to be written to one client: whole frames, bounded.
//!
//! Full: whoever sends waits. That is a viewer, whose log waits for it at no cost, or the task of one request;
//! never a session and never the agent.

use bytes::Bytes;
use tokio::sync::mpsc;

/// Pieces in flight. Viewers send pieces of a few hundred KiB at most (or one larger frame), so this bounds a
/// client's memory to a few MiB.
const PIECES: usize = 8;

/// Sends to one client.
#[derive(Clone, Debug)]
pub struct Outbox(mpsc::Sender<Bytes>);

/// Makes an outbox and the end that a transport writes from.
pub fn outbox() -> (Outbox, mpsc::Receiver<Bytes>) {
    let (sender, receiver) = mpsc::channel(PIECES);
    (Outbox(sender), receiver)
}

/// The transport has stopped writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientGone;

impl Outbox {
    /// Queues one or more whole lines, waiting for room.
    pub(crate) async fn send(&self, lines: Bytes) -> Result<(), ClientGone> {
        self.0.send(lines).await.map_err(|_| ClientGone)
    }
}
