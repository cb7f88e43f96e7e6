//! Packed records of a segment, unpacked without trust in the size that stands beside them.
//!
//! Invariant: what is allocated is at most a frame, twice what is stored, or what the stored bytes really unpack to.

use crate::pack;
use std::borrow::Cow;

/// A size up to which it is allocated on the word of the file; frames of a sealed segment are cut at it.
pub const FRAME_BYTES: usize = 256 * 1024;

/// The records in `stored`, which take `unpacked` bytes, or stand as they are if that is 0. None: they are something else.
pub(super) fn unpack_records(unpacked: u32, stored: &[u8]) -> Option<Cow<'_, [u8]>> {
    if unpacked == 0 {
        return Some(Cow::Borrowed(stored));
    }
    let size = unpacked as usize;
    let is_small = size <= FRAME_BYTES.max(stored.len().saturating_mul(2));
    if !is_small && unpacked_size(stored) != Some(size) {
        return None;
    }
    pack::unpack(u64::from(unpacked), stored).map(Cow::Owned)
}

/// How many bytes an LZ4 block unpacks to, without unpacking it.
fn unpacked_size(mut block: &[u8]) -> Option<usize> {
    const SHORTEST_MATCH: usize = 4;
    let mut size = 0_usize;
    loop {
        let (token, rest) = block.split_first()?;
        block = rest;
        let literals = read_length(token >> 4, &mut block)?;
        block = block.get(literals..)?;
        size = size.checked_add(literals)?;
        // Only the last sequence has no match.
        if block.is_empty() {
            return Some(size);
        }
        block = block.get(size_of::<u16>()..)?;
        let matched = read_length(token & 15, &mut block)?.checked_add(SHORTEST_MATCH)?;
        size = size.checked_add(matched)?;
    }
}

/// A length of which four bits stand in the token, and the rest in the bytes behind it, up to one that is not 255.
fn read_length(in_token: u8, block: &mut &[u8]) -> Option<usize> {
    let mut length = usize::from(in_token);
    if in_token == 15 {
        loop {
            let (more, rest) = block.split_first()?;
            *block = rest;
            length = length.checked_add(usize::from(*more))?;
            if *more != u8::MAX {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // design session-files 12: the size of a block is known before it is unpacked
        #[test]
        fn the_size_is_that_of_the_records(piece in prop::collection::vec(any::<u8>(), 1..600), times in 1_usize..2000) {
            let records = piece.repeat(times);
            let packed = lz4_flex::block::compress(&records);
            prop_assert_eq!(unpacked_size(&packed), Some(records.len()));
            let size = u32::try_from(records.len()).expect("it is short");
            let unpacked = unpack_records(size, &packed);
            prop_assert_eq!(unpacked.as_deref(), Some(&records[..]));
            prop_assert!(unpack_records(size + 1, &packed).is_none());
        }

        // design session-files 12: any bytes are read without a panic
        #[test]
        fn any_bytes_are_unpacked_or_refused(unpacked in any::<u32>(), stored in prop::collection::vec(any::<u8>(), 0..400)) {
            unpacked_size(&stored);
            if let Some(records) = unpack_records(unpacked, &stored) {
                prop_assert!(unpacked == 0 || records.len() == unpacked as usize);
            }
        }
    }

    // design session-files 12: a size that no record has is refused before it is allocated
    #[test]
    fn a_large_size_counts_only_if_it_is_true() {
        let records = vec![7; 8 * FRAME_BYTES];
        let packed = lz4_flex::block::compress(&records);
        let size = u32::try_from(records.len()).expect("it is short");
        assert!(size as usize > 2 * packed.len());
        assert_eq!(unpack_records(size, &packed).as_deref(), Some(&records[..]));
        assert_eq!(unpacked_size(&packed[..packed.len() - 1]), None);
        assert!(unpack_records(size - 1, &packed).is_none());
    }
}
