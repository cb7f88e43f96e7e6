//! The events of one reader's stream as the bytes that are sent.
//!
//! Rendering depends on the event alone, so all readers of a live session share what was rendered of a block. What is
//! small is joined while more is there; what is large, or alone, is sent without a copy. Not here: how the bytes go out.

use super::event_source::EventSource;
use super::render::{Renderer, expected_bytes};
use acpd_eventlog::Block;
use bytes::{Bytes, BytesMut};
use std::sync::Arc;

/// Bytes after which events are handed over.
const PIECE: usize = 64 * 1024;
/// A piece with fewer bytes is cheaper to copy than to send by itself.
const SMALL: usize = PIECE / 4;

/// Takes the pieces of one stream.
pub(super) trait Sink {
    type Closed;

    /// Takes a piece, and waits for room if there is none.
    fn take(&mut self, piece: Bytes) -> impl Future<Output = Result<(), Self::Closed>> + Send;
}

/// Gathers a reader's events until they are worth sending.
#[derive(Default)]
pub(super) struct Frames {
    renderer: Renderer,
    open: Open,
}

/// What is not sent yet. One of its parts is empty.
#[derive(Default)]
struct Open {
    /// A piece that others may have, too.
    shared: Bytes,
    own: BytesMut,
}

impl Frames {
    /// Adds the events of a block that `source` has given, and sends what gets full.
    pub(super) async fn add<S: Sink>(
        &mut self,
        block: Block,
        source: &EventSource,
        sink: &mut S,
    ) -> Result<(), S::Closed> {
        let renderer = &mut self.renderer;
        if let Some(pieces) = source.shared_form(&block, || render_for_all(renderer, &block)) {
            // Of no use beside the form.
            drop(block);
            for piece in pieces.iter() {
                if let Some(full) = self.open.add(piece) {
                    sink.take(full).await?;
                }
            }
            return Ok(());
        }
        let own = self.open.own(expected_bytes(&block));
        for event in block.events() {
            self.renderer.sse(&event, own);
            if own.len() >= PIECE {
                sink.take(own.split().freeze()).await?;
            }
        }
        Ok(())
    }

    /// What was added and not sent.
    pub(super) fn rest(&mut self) -> Option<Bytes> {
        self.open.take()
    }
}

/// A block's events for all, cut where one reader's own would be.
fn render_for_all(renderer: &mut Renderer, block: &Block) -> Arc<[Bytes]> {
    let (mut pieces, mut out) = (Vec::new(), BytesMut::new());
    let room = expected_bytes(block).min(PIECE + PIECE / 4);
    let mut cut = |out: &mut BytesMut| {
        // Kept as long as the block, and charged for what it holds.
        let piece = Bytes::from(Vec::from(std::mem::take(out)).into_boxed_slice());
        pieces.push(piece);
    };
    for event in block.events() {
        if out.is_empty() {
            out.reserve(room);
        }
        renderer.sse(&event, &mut out);
        if out.len() >= PIECE {
            cut(&mut out);
        }
    }
    if !out.is_empty() {
        cut(&mut out);
    }
    pieces.into()
}

impl Open {
    /// Adds a shared piece, and returns what is worth sending now.
    fn add(&mut self, piece: &Bytes) -> Option<Bytes> {
        let is_small = |bytes: usize| (1..SMALL).contains(&bytes);
        if !is_small(piece.len()) || (self.own.is_empty() && !is_small(self.shared.len())) {
            let before = self.take();
            self.shared = piece.clone();
            return before;
        }
        let own = self.own(SMALL);
        own.extend_from_slice(piece);
        (own.len() >= PIECE).then(|| own.split().freeze())
    }

    /// Where a reader's own bytes are written, with room for so many as far as they go out at once.
    fn own(&mut self, room: usize) -> &mut BytesMut {
        let shared = std::mem::take(&mut self.shared);
        let most = (PIECE + PIECE / 4).saturating_sub(self.own.len());
        self.own.reserve(shared.len() + room.min(most));
        self.own.extend_from_slice(&shared);
        &mut self.own
    }

    fn take(&mut self) -> Option<Bytes> {
        let bytes = match self.own.is_empty() {
            true => std::mem::take(&mut self.shared),
            false => std::mem::take(&mut self.own).freeze(),
        };
        (!bytes.is_empty()).then_some(bytes)
    }
}

#[cfg(test)]
mod tests;
