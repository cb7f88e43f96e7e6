//! A run of committed events of one session, as bytes that any number of readers share.
//!
//! Invariant: a block holds exactly the events `first..=last`, and its bytes were checked to hold that many whole
//! records. Cloning and cutting the front off are cheap. A block does not know its session.

use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::batch::HEADER_BYTES;

/// A new block is begun in the same commit when one reaches this size, so that a reader's piece stays small.
/// A block is larger only when its last event is.
const TARGET_BYTES: usize = 1024 * 1024;

/// One event, borrowed from its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its number in its session, from 1, without holes.
    pub seq: u64,
    /// What the host says it is.
    pub kind: u16,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// The host's bytes, unchanged.
    pub payload: &'a [u8],
}

/// A run of events of one session in order.
#[derive(Debug, Clone)]
pub struct Block {
    first: u64,
    last: u64,
    records: Bytes,
}

impl Block {
    /// The first and the last sequence number in it.
    pub fn range(&self) -> RangeInclusive<u64> {
        self.first..=self.last
    }

    /// The first sequence number in it.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The last sequence number in it.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// How many bytes its events take, headers included.
    pub fn bytes(&self) -> usize {
        self.records.len()
    }

    /// Its events in order.
    pub fn events(&self) -> Events<'_> {
        Events::new(self.first, &self.records)
    }

    /// The payload of one of its events, shared instead of copied.
    ///
    /// # Panics
    ///
    /// When the event is of another block.
    pub fn share(&self, event: &Event<'_>) -> Bytes {
        self.records.slice_ref(event.payload)
    }

    /// The part of it that begins with `seq`, or nothing if it does not hold `seq`.
    pub(crate) fn starting_at(&self, seq: u64) -> Option<Self> {
        if !self.range().contains(&seq) {
            return None;
        }
        let mut events = self.events();
        for _ in self.first..seq {
            events.next();
        }
        let skipped = self.records.len() - events.records.len();
        Some(Self { first: seq, last: self.last, records: self.records.slice(skipped..) })
    }

    /// A block from stored bytes, or nothing if they are not exactly the events `first..=last`.
    pub(crate) fn checked(first: u64, last: u64, records: Bytes) -> Option<Self> {
        let mut events = Events { next: first, records: &records };
        for _ in first..=last {
            events.next()?;
        }
        events.records.is_empty().then_some(Self { first, last, records })
    }

    pub(crate) fn records(&self) -> &[u8] {
        &self.records
    }
}

/// The events of a block in order.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    next: u64,
    records: &'a [u8],
}

impl<'a> Events<'a> {
    pub(crate) fn new(first: u64, records: &'a [u8]) -> Self {
        Self { next: first, records }
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let (length, rest) = self.records.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        let (at_ms, rest) = rest.split_first_chunk()?;
        let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let seq = self.next;
        self.next += 1;
        self.records = rest;
        Some(Event { seq, kind: u16::from_le_bytes(*kind), at_ms: i64::from_le_bytes(*at_ms), payload })
    }
}

/// Gathers the records of one session and cuts them into blocks.
#[derive(Debug)]
pub(crate) struct BlockBuilder {
    next: u64,
    done: Vec<Block>,
    open: Vec<u8>,
    open_first: u64,
}

impl BlockBuilder {
    pub(crate) fn new(first: u64) -> Self {
        Self { next: first, done: Vec::new(), open: Vec::new(), open_first: first }
    }

    /// Adds `count` whole records.
    pub(crate) fn add(&mut self, records: Vec<u8>, count: u64) {
        if self.open.is_empty() {
            self.open = records;
        } else {
            self.open.extend_from_slice(&records);
        }
        self.next += count;
        if self.open.len() >= TARGET_BYTES {
            self.cut();
        }
    }

    /// The blocks of one batch's records alone.
    pub(crate) fn whole(first: u64, records: Vec<u8>, count: u64) -> Vec<Block> {
        let mut builder = Self::new(first);
        builder.add(records, count);
        builder.finish()
    }

    /// All that was added, as blocks.
    pub(crate) fn finish(mut self) -> Vec<Block> {
        if !self.open.is_empty() {
            self.cut();
        }
        self.done
    }

    fn cut(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        if open.capacity() - open.len() > open.len() / 8 {
            // It may be kept for long, and costs what it has room for.
            open.shrink_to_fit();
        }
        let mut records = Bytes::from(open);
        let mut first = self.open_first;
        while records.len() > TARGET_BYTES {
            let mut events = Events { next: first, records: &records };
            let whole = records.len();
            while whole - events.records.len() < TARGET_BYTES && events.next().is_some() {}
            let (last, taken) = (events.next - 1, whole - events.records.len());
            self.done.push(Block { first, last, records: records.split_to(taken) });
            first = last + 1;
        }
        if !records.is_empty() {
            self.done.push(Block { first, last: self.next - 1, records });
        }
        self.open_first = self.next;
    }
}

const _: () = assert!(HEADER_BYTES == size_of::<u32>() + size_of::<u16>() + size_of::<i64>());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;

    fn records(sizes: &[usize]) -> (Vec<u8>, u64) {
        let mut batch = Batch::new();
        for (at, size) in (0..).zip(sizes) {
            batch.push(7, at, &vec![b'x'; *size]);
        }
        (batch.records, batch.count)
    }

    // contract 1.6: a sequence number per event, without holes
    #[test]
    fn blocks_are_cut_at_records_and_number_them_without_holes() {
        let mut builder = BlockBuilder::new(5);
        let sizes = [TARGET_BYTES / 2, TARGET_BYTES / 2, 10, 3 * TARGET_BYTES, 0, 1];
        let (bytes, count) = records(&sizes);
        builder.add(bytes, count);
        let (bytes, count) = records(&[4, 4]);
        builder.add(bytes, count);
        let blocks = builder.finish();
        assert!(blocks.len() > 2, "{} blocks", blocks.len());
        let events: Vec<_> = blocks.iter().flat_map(Block::events).collect();
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), (5..13).collect::<Vec<_>>());
        let lengths: Vec<_> = events.iter().map(|event| event.payload.len()).collect();
        assert_eq!(lengths, [&sizes[..], &[4, 4]].concat());
        for block in &blocks {
            let bytes = Bytes::copy_from_slice(block.records());
            assert!(Block::checked(block.first(), block.last(), bytes).is_some());
        }
    }

    // issue 2, deliver 4: a damaged file is a clear error
    #[test]
    fn bytes_that_are_not_the_stated_events_are_no_block() {
        let (bytes, _) = records(&[3, 5]);
        let bytes = Bytes::from(bytes);
        assert!(Block::checked(1, 2, bytes.clone()).is_some());
        assert!(Block::checked(1, 3, bytes.clone()).is_none(), "one record is missing");
        assert!(Block::checked(1, 1, bytes.clone()).is_none(), "one record too many");
        assert!(Block::checked(1, 2, bytes.slice(..bytes.len() - 1)).is_none(), "the last record is torn");
    }

    // contract 1.6: a cursor gets exactly what is missing
    #[test]
    fn a_block_can_begin_at_any_of_its_events() {
        let (bytes, _) = records(&[3, 0, 5]);
        let block = Block::checked(10, 12, Bytes::from(bytes)).unwrap();
        let rest = block.starting_at(12).unwrap();
        let event = rest.events().next().unwrap();
        assert_eq!((rest.range(), event.seq, event.payload.len()), (12..=12, 12, 5));
        assert_eq!(rest.share(&event).as_ptr(), event.payload.as_ptr());
        assert!(block.starting_at(13).is_none() && block.starting_at(9).is_none());
    }
}
