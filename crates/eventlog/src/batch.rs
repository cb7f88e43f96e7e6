//! What a writer hands over: records in one contiguous buffer, and what changes in the index with them.
//!
//! The buffer already has the form in which a block is stored, so a batch becomes a block without a copy.
//! A record is `payload length (u32) · kind (u16) · at_ms (i64) · payload`, all little endian. Sequence numbers are
//! not in it: they follow from the position. This is not a queue and does no IO.

use std::io;

use crate::block::Events;
use crate::failure::WriteError;
use crate::outbox::bit;

/// The largest payload of one event, in bytes. SQLite holds at most 1,000,000,000 bytes in a row.
pub const MAX_PAYLOAD_BYTES: usize = 512 * 1024 * 1024;

/// Bytes before the payload of a record.
pub(crate) const HEADER_BYTES: usize = 4 + 2 + 8;

/// Changes to a session's row in the index. What is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexUpdate {
    /// When the session last changed, in milliseconds since 1970; the index is sorted by it.
    pub updated_ms: i64,
    /// Whether the session has ended.
    pub ended: Option<bool>,
    /// The host that has the session live; `Some(None)` means that no host has it any more.
    pub owner: Option<Option<String>>,
    /// The host's own word for what the session is doing, opaque here. It is 0 at first and whenever the owner changes,
    /// as [`position`](Self::position) is.
    pub state: Option<u8>,
    /// Bytes of its agent's output that the session has handled. It is 0 at first and whenever the owner changes; only
    /// [`EventLog::adopt`](crate::EventLog::adopt) leaves it.
    pub position: Option<u64>,
    /// The host's own description of the session, opaque here.
    pub info: Option<Vec<u8>>,
    /// What the session was given and has not begun with, opaque here, by numbers of the host; `None` when it begins with
    /// it or drops it. All of it goes whenever the owner changes; only [`EventLog::adopt`](crate::EventLog::adopt) leaves it.
    pub waiting: Vec<(u64, Option<Vec<u8>>)>,
}

impl IndexUpdate {
    /// Takes over what `later` says.
    pub(crate) fn merge(&mut self, later: IndexUpdate) {
        self.updated_ms = later.updated_ms;
        self.ended = later.ended.or(self.ended);
        self.owner = later.owner.or(self.owner.take());
        self.state = later.state.or(self.state);
        self.position = later.position.or(self.position);
        self.info = later.info.or(self.info.take());
        self.waiting.extend(later.waiting);
    }
}

/// Records that are appended together, and an index update that is committed in the same transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    pub(crate) records: Vec<u8>,
    pub(crate) count: u64,
    pub(crate) index: Option<IndexUpdate>,
    /// The size of the first payload that is over [`MAX_PAYLOAD_BYTES`]; such a batch is refused as a whole.
    pub(crate) oversized: Option<usize>,
    /// The kinds of its events, a bit each; none of those that are history.
    pub(crate) kinds: u64,
    pub(crate) is_history: bool,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch with room for so many bytes of payload.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { records: Vec::with_capacity(bytes + HEADER_BYTES), ..Self::default() }
    }

    /// An empty batch for what happened elsewhere and is only copied: no [`Subscriber`](crate::Subscriber) is told of it.
    pub fn of_history() -> Self {
        Self { is_history: true, ..Self::default() }
    }

    /// A batch without records, for a change of the index alone.
    pub fn index_only(index: IndexUpdate) -> Self {
        Self { index: Some(index), ..Self::default() }
    }

    /// Adds one event.
    pub fn push(&mut self, kind: u16, at_ms: i64, payload: &[u8]) {
        self.push_with(kind, at_ms, |out| out.extend(payload));
    }

    /// Adds one event whose payload `write` puts into the buffer in as many parts as it likes.
    pub fn push_with<R>(
        &mut self,
        kind: u16,
        at_ms: i64,
        write: impl FnOnce(&mut PayloadWriter<'_>) -> R,
    ) -> R {
        let start = self.records.len();
        self.records.extend_from_slice(&[0; 4]);
        self.records.extend_from_slice(&kind.to_le_bytes());
        self.records.extend_from_slice(&at_ms.to_le_bytes());
        let result = write(&mut PayloadWriter(&mut self.records));
        let length = self.records.len() - start - HEADER_BYTES;
        match u32::try_from(length) {
            Ok(short) if length <= MAX_PAYLOAD_BYTES => {
                self.records[start..start + 4].copy_from_slice(&short.to_le_bytes());
            }
            _ => self.oversized = self.oversized.or(Some(length)),
        }
        self.count += 1;
        if !self.is_history {
            self.kinds |= bit(kind);
        }
        result
    }

    /// Changes the index together with the records; a second update is merged into the first.
    pub fn update_index(&mut self, update: IndexUpdate) {
        match &mut self.index {
            Some(index) => index.merge(update),
            None => self.index = Some(update),
        }
    }

    /// Takes up what comes behind it, which is of the same sort: both history, or neither.
    pub(crate) fn join(&mut self, later: Self) {
        let Self { records, count, index, oversized, kinds, is_history: _ } = later;
        self.records.extend_from_slice(&records);
        self.count += count;
        self.oversized = self.oversized.or(oversized);
        self.kinds |= kinds;
        if let Some(index) = index {
            self.update_index(index);
        }
    }

    /// Its events, as if the first were number `first`.
    pub fn events(&self, first: u64) -> Events<'_> {
        Events::new(first, &self.records)
    }

    /// How many events are in it.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there is neither an event nor an index update in it.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.index.is_none()
    }

    /// How many bytes its events take, headers included.
    pub fn bytes(&self) -> usize {
        self.records.len()
    }

    /// A batch with an event that is too large is refused as a whole.
    pub(crate) fn check_size(&self) -> Result<(), WriteError> {
        match self.oversized {
            Some(bytes) => Err(WriteError::TooLarge { bytes, limit: MAX_PAYLOAD_BYTES }),
            None => Ok(()),
        }
    }

    /// What the queue is charged for it.
    pub(crate) fn cost(&self) -> usize {
        let Some(IndexUpdate { info, waiting, .. }) = &self.index else { return self.records.len() };
        let waiting = waiting.iter().filter_map(|(_, bytes)| bytes.as_ref());
        self.records.len() + info.iter().chain(waiting).map(Vec::len).sum::<usize>()
    }
}

/// Appends to the payload of the event that is being pushed, and to nothing else.
#[derive(Debug)]
pub struct PayloadWriter<'a>(&'a mut Vec<u8>);

impl PayloadWriter<'_> {
    /// Adds one part.
    pub fn extend(&mut self, part: &[u8]) {
        self.0.extend_from_slice(part);
    }
}

impl io::Write for PayloadWriter<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.extend(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
