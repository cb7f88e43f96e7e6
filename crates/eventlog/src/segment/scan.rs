//! How far a segment goes: its last whole batch, found from its end, or batch by batch from its front.
//!
//! What stands behind the last whole batch was being written when its writer died, and does not count. Damage in the middle ends
//! the segment for every reader, too; whether it is one or the other is told.

use super::batch::{BatchError, BatchFlags, HEAD_BYTES, StoredBatch, TRAILER_BYTES};
use super::{ALIGNMENT, HEADER_BYTES, NONCE_BYTES, SegmentHeader, u32_at};

/// How far the batches of a segment go that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The place behind the last of them.
    pub end: u64,
    /// The checksum of the last of them; 0 if there is none.
    pub checksum: u32,
    /// The sequence number of the last event in them; one before the segment's first if there is none.
    pub last_seq: u64,
    /// Whether the bytes behind them are no beginning of a batch either.
    pub is_damaged: bool,
}

impl Reach {
    /// That of a segment without batches, whose first event would be `first_seq`.
    pub(super) fn of_none(first_seq: u64) -> Self {
        let last_seq = first_seq.saturating_sub(1);
        Self { end: HEADER_BYTES as u64, checksum: 0, last_seq, is_damaged: false }
    }

    /// Whether the segment with this header says that it begins here.
    pub fn is_continued_by(&self, next: &SegmentHeader) -> bool {
        (next.cut, next.before) == (self.end, self.checksum)
            && Some(next.first_seq) == self.last_seq.checked_add(1)
    }
}

/// Goes through the batches of a whole segment in `bytes` from the front and hands out those that count, with their places.
/// `first_seq` is that of the segment's header, `cut` is where the next segment says that this one ends.
pub fn scan<'a>(
    bytes: &'a [u8],
    nonce: &[u8; NONCE_BYTES],
    first_seq: u64,
    mut visit: impl FnMut(u64, StoredBatch<'a>),
) -> Reach {
    let mut reach = Reach::of_none(first_seq);
    let (mut at, mut next_seq) = (reach.end, first_seq);
    loop {
        let rest = rest_of(bytes, at);
        let batch = match StoredBatch::decode(rest, nonce, at) {
            // One that does not come next was never appended behind those before it.
            Ok(batch) if batch.head.first_seq != next_seq => {
                // But a piece of a chain whose end could not be written may stand where one came later.
                reach.is_damaged = !batch.head.flags.has(BatchFlags::MORE_FOLLOWS);
                return reach;
            }
            Ok(batch) => batch,
            Err(BatchError::Cut) => return reach,
            Err(BatchError::Damaged) => {
                // What a file system adds when it has lost a tail is no damage.
                reach.is_damaged = rest.iter().any(|byte| *byte != 0);
                return reach;
            }
        };
        next_seq = next_seq.saturating_add(u64::from(batch.head.events));
        let place = at;
        at += u64::from(batch.length);
        if batch.head.flags.has(BatchFlags::MORE_FOLLOWS) {
            continue;
        }
        // Those before it in a chain are decoded again: to keep them meanwhile would take more memory than their bytes.
        let mut earlier = reach.end;
        while let Ok(batch) = StoredBatch::decode(rest_of(&bytes[..place as usize], earlier), nonce, earlier)
        {
            visit(earlier, batch);
            earlier += u64::from(batch.length);
        }
        visit(place, batch);
        (reach.end, reach.checksum, reach.last_seq) = (at, batch.checksum, next_seq.saturating_sub(1));
        if batch.head.flags.has(BatchFlags::RELEASED) {
            return reach;
        }
    }
}

/// The bytes from a place on; none if it is behind them.
fn rest_of(bytes: &[u8], at: u64) -> &[u8] {
    usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default()
}

/// Where a batch would begin that ends at the place `end` with this trailer; None if none can.
pub fn begin_of(trailer: &[u8; TRAILER_BYTES], end: u64) -> Option<u64> {
    let size = u32_at(trailer, 0) as usize;
    let is_size = size >= HEAD_BYTES + TRAILER_BYTES && size.is_multiple_of(ALIGNMENT);
    end.checked_sub(size as u64).filter(|at| is_size && *at >= HEADER_BYTES as u64)
}

/// The last batch of a segment whose file is whole, and its place, from its trailer. None: the last bytes are no whole batch, and
/// the segment is to be scanned. `tail` is the end of the file, which is `length` long, and must have the whole batch.
pub fn find_last<'a>(
    tail: &'a [u8],
    length: u64,
    nonce: &[u8; NONCE_BYTES],
) -> Option<(u64, StoredBatch<'a>)> {
    let trailer = tail.last_chunk::<TRAILER_BYTES>()?;
    let at = begin_of(trailer, length)?;
    let size = usize::try_from(length - at).ok()?;
    let bytes = tail.get(tail.len().checked_sub(size)?..)?;
    let batch = StoredBatch::decode(bytes, nonce, at).ok()?;
    // The front of a batch that was cut off may name the length of those before it together.
    (batch.length as usize == size && !batch.head.flags.has(BatchFlags::MORE_FOLLOWS)).then_some((at, batch))
}

#[cfg(test)]
mod tests {
    use super::super::batch::BatchHead;
    use super::super::section::{Section, put_section};
    use super::*;
    use proptest::prelude::*;

    const NONCE: [u8; NONCE_BYTES] = *b"nonce of a test.";

    /// One batch: its records, whether more follows, what it says of its session.
    #[derive(Clone, Debug)]
    struct Appended {
        records: Vec<u8>,
        events: u32,
        more: bool,
        info: Option<Vec<u8>>,
    }

    fn write(segment: &mut Vec<u8>, next_seq: &mut u64, appended: &Appended) -> u64 {
        let offset = segment.len() as u64;
        let flags = if appended.more { BatchFlags::MORE_FOLLOWS } else { BatchFlags::default() };
        let head = BatchHead { flags, events: appended.events, first_seq: *next_seq, ..BatchHead::default() };
        let mut front = BatchHead::begin(0);
        appended.info.iter().for_each(|info| put_section(&mut front, Section::Info(info)));
        let framed = head.frame(front, &appended.records, &NONCE, offset).expect("it is short");
        segment.extend([framed.front(), &appended.records, framed.back()].concat());
        *next_seq += u64::from(appended.events);
        offset
    }

    fn segment(first_seq: u64, all: &[Appended]) -> (Vec<u8>, Vec<(u64, u64)>) {
        let mut bytes = vec![0; HEADER_BYTES];
        let mut next_seq = first_seq;
        // Each place with the event that is next there.
        let places = all.iter().map(|one| (write(&mut bytes, &mut next_seq, one), next_seq)).collect();
        (bytes, places)
    }

    fn any_batch() -> impl Strategy<Value = Appended> {
        let records = prop::collection::vec(any::<u8>(), 0..300);
        let info = prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
        (records, 0_u32..5, prop::bool::weighted(0.3), info)
            .prop_map(|(records, events, more, info)| Appended { records, events, more, info })
    }

    proptest! {
        // design session-files 3: what was appended comes back, and of a chain all or nothing
        #[test]
        fn what_was_appended_comes_back(all in prop::collection::vec(any_batch(), 0..12), first in 1_u64..1000) {
            let (bytes, places) = segment(first, &all);
            let whole = all.iter().rposition(|one| !one.more).map_or(0, |last| last + 1);
            let mut found = Vec::new();
            let reach = scan(&bytes, &NONCE, first, |at, batch| found.push((at, batch.records.to_vec())));
            prop_assert_eq!(found.len(), whole);
            for ((at, records), (place, one)) in found.iter().zip(places.iter().zip(&all)) {
                prop_assert_eq!((*at, records), (place.0, &one.records));
            }
            prop_assert!(!reach.is_damaged);
            let end = places.get(whole).map_or(bytes.len() as u64, |place| place.0);
            prop_assert_eq!(reach.end, end);
            let next = if whole == 0 { first } else { places[whole - 1].1 };
            prop_assert_eq!(reach.last_seq, next - 1);
            let last = find_last(&bytes, bytes.len() as u64, &NONCE);
            prop_assert_eq!(last.map(|(at, batch)| (at, batch.checksum)).is_some(), whole > 0 && whole == all.len());
        }

        // design session-files 8: a torn tail costs what was not whole, at each length, and nothing before it
        #[test]
        fn a_torn_tail_costs_only_itself(all in prop::collection::vec(any_batch(), 1..6), cut in any::<prop::sample::Index>()) {
            let (bytes, _) = segment(1, &all);
            let length = cut.index(bytes.len() - HEADER_BYTES) + HEADER_BYTES;
            let mut whole = Vec::new();
            scan(&bytes, &NONCE, 1, |at, batch| whole.push((at, batch.length, batch.checksum)));
            let mut found = Vec::new();
            let reach = scan(&bytes[..length], &NONCE, 1, |at, batch| found.push((at, batch.length, batch.checksum)));
            prop_assert_eq!(&whole[..found.len()], &found[..]);
            prop_assert!(reach.end <= length as u64);
            if find_last(&bytes[..length], length as u64, &NONCE).is_some() {
                prop_assert_eq!(reach.end, length as u64);
            }
        }

        // design session-files 11.3: neither a changed byte nor a batch from another place or segment passes
        #[test]
        fn what_was_not_written_there_does_not_count(
            all in prop::collection::vec(any_batch(), 1..6), at in any::<prop::sample::Index>(), bit in 0_u8..8,
        ) {
            let (bytes, places) = segment(1, &all);
            let mut changed = bytes.clone();
            let at = HEADER_BYTES + at.index(bytes.len() - HEADER_BYTES);
            changed[at] ^= 1 << bit;
            let reach = scan(&changed, &NONCE, 1, |_, _| {});
            prop_assert!(reach.end <= at as u64);
            let other = scan(&bytes, b"another's nonce.", 1, |_, _| {});
            prop_assert_eq!(other.end, HEADER_BYTES as u64);
            let moved = &bytes[HEADER_BYTES..];
            let elsewhere = StoredBatch::decode(moved, &NONCE, places[0].0 + 8);
            prop_assert_eq!(elsewhere.err(), Some(BatchError::Damaged));
        }

        // design session-files 12: any bytes are read without a panic
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let reach = scan(&bytes, &NONCE, 1, |_, _| {});
            prop_assert_eq!(reach.end, HEADER_BYTES as u64);
            prop_assert!(find_last(&bytes, bytes.len() as u64, &NONCE).is_none());
        }
    }

    // design session-files 8: the front of a batch, which has its length, is not taken for the trailer of the one before it
    #[test]
    fn the_front_of_a_batch_is_no_trailer() {
        let one = |length| Appended { records: vec![0; length], events: 0, more: false, info: None };
        let (bytes, places) = segment(1, &[one(40), one(48)]);
        let length = places[1].0 + TRAILER_BYTES as u64;
        let torn = &bytes[..length as usize];
        assert_eq!(scan(torn, &NONCE, 1, |_, _| {}).end, places[1].0);
        assert!(find_last(torn, length, &NONCE).is_none());
    }

    // design session-files 4: anything behind "released" never counts
    #[test]
    fn nothing_counts_behind_the_release() {
        let one = Appended { records: b"a".to_vec(), events: 1, more: false, info: None };
        let (mut bytes, _) = segment(1, &[]);
        let head = BatchHead {
            flags: BatchFlags::ENDED.with(BatchFlags::RELEASED),
            events: 1,
            first_seq: 1,
            ..BatchHead::default()
        };
        let framed = head.frame(BatchHead::begin(0), b"x", &NONCE, HEADER_BYTES as u64).expect("it is short");
        bytes.extend([framed.front(), b"x", framed.back()].concat());
        let end = bytes.len() as u64;
        write(&mut bytes, &mut 2, &one);
        assert_eq!(scan(&bytes, &NONCE, 1, |_, _| {}).end, end);
    }
}
