//! The newest blocks of all sessions, so that a reader that keeps up never touches the file.
//!
//! The writer thread puts blocks in right after their commit and before readers are woken; the oldest go first when
//! the bound is reached. Blocks never change, so a cached one can not be stale. A session's blocks are in order but
//! not always adjacent (a session may be written without an appender in between): a miss is no proof of absence.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

use crate::block::Block;

/// Charged per block beyond its records: itself, its place in line, and what the allocator adds.
const OVERHEAD: usize = 160;

/// Charged per session that has blocks: its queue, and its place in the map.
const SESSION_OVERHEAD: usize = 320;

#[derive(Debug)]
pub(crate) struct Cache {
    capacity: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: usize,
    /// The session of each block, oldest block first.
    order: VecDeque<i64>,
    sessions: HashMap<i64, VecDeque<Block>>,
}

impl Cache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, kept: Mutex::default() }
    }

    pub(crate) fn put(&self, session: i64, blocks: Vec<Block>) {
        let mut kept = self.kept.lock();
        for block in blocks {
            kept.bytes += block.bytes() + OVERHEAD;
            kept.order.push_back(session);
            let blocks = kept.sessions.entry(session).or_default();
            let is_first = blocks.is_empty();
            blocks.push_back(block);
            if is_first {
                kept.bytes += SESSION_OVERHEAD;
            }
        }
        while kept.bytes > self.capacity && kept.drop_oldest() {}
    }

    /// The rest of the block that holds `seq`, beginning there.
    pub(crate) fn get(&self, session: i64, seq: u64) -> Option<Block> {
        let block = {
            let kept = self.kept.lock();
            let blocks = kept.sessions.get(&session)?;
            let at = blocks.partition_point(|block| block.last() < seq);
            blocks.get(at)?.clone()
        };
        block.starting_at(seq)
    }
}

impl Kept {
    fn drop_oldest(&mut self) -> bool {
        let Some(session) = self.order.pop_front() else { return false };
        let Some(blocks) = self.sessions.get_mut(&session) else { return true };
        if let Some(block) = blocks.pop_front() {
            self.bytes -= block.bytes() + OVERHEAD;
        }
        if blocks.is_empty() {
            self.sessions.remove(&session);
            self.bytes -= SESSION_OVERHEAD;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;
    use crate::block::BlockBuilder;

    fn block(seq: u64, size: usize) -> Vec<Block> {
        let mut batch = Batch::new();
        batch.push(1, 0, &vec![0; size]);
        let mut builder = BlockBuilder::new(seq);
        builder.add(batch.records, 1);
        builder.finish()
    }

    // issue 2, must hold: bounded memory
    #[test]
    fn the_oldest_blocks_of_all_sessions_make_room() {
        let cache = Cache::new(4 * (1000 + OVERHEAD + 14) + 2 * SESSION_OVERHEAD);
        for seq in 1..=3 {
            cache.put(1, block(seq, 1000));
            cache.put(2, block(seq, 1000));
        }
        assert!(cache.get(1, 1).is_none() && cache.get(2, 1).is_none());
        assert_eq!(cache.get(1, 2).unwrap().range(), 2..=2);
        assert_eq!(cache.get(2, 3).unwrap().range(), 3..=3);
        cache.put(3, block(1, 100_000));
        assert!(cache.get(1, 3).is_none() && cache.get(3, 1).is_none(), "larger than the whole cache");
        assert_eq!(cache.kept.lock().bytes, 0);
    }

    // contract 1.6: exactly what is missing
    #[test]
    fn a_gap_between_cached_blocks_is_a_miss() {
        let cache = Cache::new(1 << 20);
        cache.put(1, block(1, 10));
        cache.put(1, block(3, 10));
        assert!(cache.get(1, 2).is_none());
        assert!(cache.get(1, 3).is_some() && cache.get(1, 4).is_none());
    }
}
