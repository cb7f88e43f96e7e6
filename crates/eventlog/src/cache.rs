//! The newest blocks of all sessions, so that a reader that keeps up never touches the file.
//!
//! The writer thread puts blocks in right after their commit and before readers are woken; the oldest go first when
//! the bound is reached. Blocks never change, so a cached one can not be stale. A session's blocks are in order but
//! not always adjacent (a session may be written without an appender in between): a miss is no proof of absence.
//! Readers keep with a block the forms in which many of them send it; the bound counts these too.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::block::Block;

/// Charged per block beyond its records: itself, its place in line, and what the allocator adds.
const OVERHEAD: usize = 160;

/// Charged per session that has blocks: its queue, and its place in the map.
const SESSION_OVERHEAD: usize = 320;

/// Charged per form, and per piece of it, beyond their bytes.
const FORM_OVERHEAD: usize = 128;
const PIECE_OVERHEAD: usize = 64;

/// Which form of a block it is. What the numbers mean is for readers to agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormKind(pub u32);

/// The place of a block's form, which its first reader fills.
type FormSlot = Arc<OnceLock<Arc<[Bytes]>>>;

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
    sessions: HashMap<i64, VecDeque<Cached>>,
}

#[derive(Debug)]
struct Cached {
    block: Block,
    forms: Vec<(FormKind, FormSlot)>,
    /// Charged for the forms.
    form_bytes: usize,
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
            blocks.push_back(Cached { block, forms: Vec::new(), form_bytes: 0 });
            if is_first {
                kept.bytes += SESSION_OVERHEAD;
            }
        }
        kept.drop_down_to(self.capacity);
    }

    /// The rest of the block that holds `seq`, beginning there.
    pub(crate) fn get(&self, session: i64, seq: u64) -> Option<Block> {
        let block = {
            let kept = self.kept.lock();
            let blocks = kept.sessions.get(&session)?;
            let at = blocks.partition_point(|cached| cached.block.last() < seq);
            blocks.get(at)?.block.clone()
        };
        block.starting_at(seq)
    }

    /// The form of a kind that `make` gives a block, made once while the block is cached. None for one that is not, and for
    /// a part of one.
    ///
    /// A caller that comes while it is made blocks: no longer than if it made the form itself.
    pub(crate) fn form(
        &self,
        session: i64,
        block: &Block,
        kind: FormKind,
        make: impl FnOnce() -> Arc<[Bytes]>,
    ) -> Option<Arc<[Bytes]>> {
        let slot = self.kept.lock().find(session, block)?.slot(kind);
        let mut made_bytes = None;
        let form = slot.get_or_init(|| {
            let form = make();
            made_bytes = Some(bytes_of(&form));
            form
        });
        if let Some(bytes) = made_bytes {
            self.charge(session, block, bytes);
        }
        Some(Arc::clone(form))
    }

    /// Charges a form to its block, unless that went meanwhile.
    fn charge(&self, session: i64, block: &Block, bytes: usize) {
        let mut kept = self.kept.lock();
        if let Some(cached) = kept.find(session, block) {
            cached.form_bytes += bytes;
            kept.bytes += bytes;
            kept.drop_down_to(self.capacity);
        }
    }
}

/// The bytes that a form is charged for.
fn bytes_of(form: &[Bytes]) -> usize {
    FORM_OVERHEAD + form.iter().map(|piece| piece.len() + PIECE_OVERHEAD).sum::<usize>()
}

impl Cached {
    fn slot(&mut self, kind: FormKind) -> FormSlot {
        if let Some((_, slot)) = self.forms.iter().find(|(known, _)| *known == kind) {
            return Arc::clone(slot);
        }
        let slot = FormSlot::default();
        // Most blocks have one.
        self.forms.reserve_exact(1);
        self.forms.push((kind, Arc::clone(&slot)));
        slot
    }
}

impl Kept {
    /// Where a whole block is.
    fn find(&mut self, session: i64, block: &Block) -> Option<&mut Cached> {
        let blocks = self.sessions.get_mut(&session)?;
        let at = blocks.partition_point(|cached| cached.block.last() < block.first());
        // The same bytes: a session that was removed may have left its number to another.
        blocks.get_mut(at).filter(|cached| std::ptr::eq(cached.block.records(), block.records()))
    }

    fn drop_down_to(&mut self, capacity: usize) {
        while self.bytes > capacity && self.drop_oldest() {}
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(session) = self.order.pop_front() else { return false };
        let Some(blocks) = self.sessions.get_mut(&session) else { return true };
        if let Some(Cached { block, form_bytes, .. }) = blocks.pop_front() {
            self.bytes -= block.bytes() + OVERHEAD + form_bytes;
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
    use std::sync::atomic::{AtomicUsize, Ordering};

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

    const KIND: FormKind = FormKind(0);

    fn form(pieces: &[usize]) -> Arc<[Bytes]> {
        pieces.iter().map(|size| Bytes::from(vec![b'f'; *size])).collect()
    }

    // issue 29, deliver 3: encoded once for all readers, also for those that come while it is made
    #[test]
    fn a_form_is_made_once_for_all_that_ask() {
        const READERS: usize = 16;
        let (cache, made) = (Cache::new(1 << 20), AtomicUsize::new(0));
        let barrier = std::sync::Barrier::new(READERS);
        for seq in 1..=50 {
            cache.put(1, block(seq, 10));
        }
        let read_all = || {
            (1..=50)
                .map(|seq| {
                    let block = cache.get(1, seq).expect("it is cached");
                    barrier.wait();
                    let make = || {
                        made.fetch_add(1, Ordering::Relaxed);
                        form(&[20])
                    };
                    cache.form(1, &block, KIND, make).expect("it is whole")[0].as_ptr() as usize
                })
                .collect::<Vec<_>>()
        };
        let read = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read_all)).collect();
            readers.into_iter().map(|reader| reader.join().expect("no panic")).collect::<Vec<_>>()
        });
        assert_eq!(made.load(Ordering::Relaxed), 50);
        assert!(read.iter().all(|forms| *forms == read[0]), "all have the same bytes");
    }

    // issue 29, deliver 3: the bound holds with forms
    #[test]
    fn forms_are_charged_and_go_with_their_blocks() {
        let of_block = 1000 + OVERHEAD + 14;
        let of_form = FORM_OVERHEAD + 2 * (1000 + PIECE_OVERHEAD);
        let cache = Cache::new(SESSION_OVERHEAD + 3 * of_block + of_form);
        let make = || form(&[1000, 1000]);
        let bytes = || cache.kept.lock().bytes;
        cache.put(1, block(1, 1000));
        let first = cache.get(1, 1).expect("it is cached");
        let made = cache.form(1, &first, KIND, make).expect("it is whole");
        assert_eq!(bytes(), SESSION_OVERHEAD + of_block + of_form);
        cache.form(1, &first, KIND, || unreachable!("it is made"));
        assert_eq!(bytes(), SESSION_OVERHEAD + of_block + of_form, "charged once");
        cache.put(1, block(2, 1000));
        cache.put(1, block(3, 1000));
        let second = cache.get(1, 2).expect("there is room for three and a form");
        cache.form(1, &second, KIND, make).expect("it is whole");
        assert!(cache.get(1, 1).is_none(), "the second form drops the first block");
        assert_eq!(bytes(), SESSION_OVERHEAD + 2 * of_block + of_form);
        assert!(cache.form(1, &first, KIND, make).is_none(), "what is not cached keeps nothing");
        assert_eq!(made.len(), 2, "a reader keeps what it has");
        let third = cache.get(1, 3).expect("it is cached");
        let large = cache.form(1, &third, KIND, || form(&[1_000_000]));
        large.expect("a form larger than the cache is of use once");
        assert_eq!(bytes(), 0);
    }

    // issue 29, deliver 3: each kind of readers has its form, and all are charged
    #[test]
    fn a_block_has_a_form_of_each_kind() {
        let of_block = 1000 + OVERHEAD + 14;
        let of_form = |bytes: usize| FORM_OVERHEAD + bytes + PIECE_OVERHEAD;
        let cache = Cache::new(1 << 20);
        cache.put(1, block(1, 1000));
        let cached = cache.get(1, 1).expect("it is cached");
        for (kind, bytes) in [(0, 10), (7, 20), (0, 30), (7, 40)] {
            let form = cache.form(1, &cached, FormKind(kind), || form(&[bytes])).expect("it is whole");
            assert_eq!(form[0].len(), if kind == 0 { 10 } else { 20 });
        }
        let all = SESSION_OVERHEAD + of_block + of_form(10) + of_form(20);
        assert_eq!(cache.kept.lock().bytes, all);
        cache.put(2, block(1, 1 << 20));
        assert_eq!(cache.kept.lock().bytes, 0, "they go with their block");
    }

    // issue 29, deliver 3: a reader that begins inside a block makes its own, and so does one of other bytes
    #[test]
    fn only_a_whole_cached_block_has_a_form() {
        let cache = Cache::new(1 << 20);
        let mut batch = Batch::new();
        (0..3).for_each(|n| batch.push(1, n, b"event"));
        cache.put(1, BlockBuilder::whole(1, batch.records, 3));
        let whole = cache.get(1, 1).expect("it is cached");
        let part = cache.get(1, 2).expect("it is cached");
        assert!(cache.form(1, &part, KIND, || form(&[1])).is_none());
        assert!(cache.form(1, &whole, KIND, || form(&[1])).is_some());
        assert!(cache.form(1, &part, KIND, || form(&[1])).is_none());
        assert!(cache.form(2, &whole, KIND, || form(&[1])).is_none(), "of another session");
        assert!(
            cache.form(1, &block(1, 5)[0], KIND, || form(&[1])).is_none(),
            "of a former session of this number"
        );
    }
}
