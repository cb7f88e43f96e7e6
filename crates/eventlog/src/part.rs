//! All that one group of batches holds of one session, and how its callers are answered.
//!
//! The writer thread makes it and writes it, whole or not at all. No IO here.

use tokio::sync::OwnedSemaphorePermit;

use crate::batch::{Batch, IndexUpdate};
use crate::block::{Block, BlockBuilder};
use crate::failure::WriteError;
use crate::live::{Live, Owner};
use crate::outbox::Noted;
use crate::queue::{QueuePermit, Reply};
use crate::store::Standing;

/// The owner that a change of the index gives, if it gives one.
pub(crate) fn owner_after(index: Option<&IndexUpdate>) -> Option<Option<&str>> {
    index?.owner.as_ref().map(Option::as_deref)
}

/// All that one group holds of one session.
pub(crate) struct Part<'a> {
    pub(crate) live: &'a Live,
    /// Whose it is until this is written.
    pub(crate) owner: Owner,
    pub(crate) after: u64,
    builder: Option<BlockBuilder>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) bytes: u64,
    pub(crate) index: Option<IndexUpdate>,
    pub(crate) replies: Vec<Reply>,
    permits: Vec<OwnedSemaphorePermit>,
    pub(crate) noted: Vec<Noted>,
}

impl<'a> Part<'a> {
    pub(crate) fn new(live: &'a Live, after: u64) -> Self {
        let builder = Some(BlockBuilder::new(after + 1));
        let (blocks, replies, permits) = (Vec::new(), Vec::new(), Vec::new());
        let (owner, noted) = (live.owner(), Vec::new());
        Self { live, owner, after, builder, blocks, bytes: 0, index: None, replies, permits, noted }
    }

    pub(crate) fn standing(&self) -> Standing<'_> {
        Standing { row: self.live.row, owner: self.owner.as_deref(), after: self.after }
    }

    pub(crate) fn add(&mut self, batch: Batch, reply: Option<Reply>, permit: QueuePermit) {
        self.bytes += batch.cost() as u64;
        if let Some(builder) = &mut self.builder {
            builder.add(batch.records, batch.count);
        }
        match (&mut self.index, batch.index) {
            (Some(index), Some(later)) => index.merge(later),
            (index, later) => *index = index.take().or(later),
        }
        self.replies.extend(reply);
        self.permits.extend(permit);
    }

    pub(crate) fn events(&self) -> u64 {
        self.blocks.last().map_or(0, |last| last.last() - self.after)
    }

    pub(crate) fn seal(&mut self) {
        self.blocks = self.builder.take().map(BlockBuilder::finish).unwrap_or_default();
    }

    pub(crate) fn fail(self, error: &WriteError) {
        tracing::warn!(session = self.live.id, %error, "nothing more is written for this session");
        self.live.fail(error.clone());
        self.replies.into_iter().for_each(|reply| answer(Some(reply), &Err(error.clone())));
    }
}

pub(crate) fn answer(reply: Option<Reply>, result: &Result<(), WriteError>) {
    // A caller that no longer waits does not need the answer.
    reply.map(|reply| reply.send(result.clone()).ok());
}
