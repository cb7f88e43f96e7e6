//! The records of a block as they stand in the file: packed when that pays.
//!
//! Messages of one session repeat their envelopes, so they shrink to a fraction, and what is not written needs no
//! copy to the write-ahead log, none back at the checkpoint and no disk. Blocks in memory are never packed.

use std::borrow::Cow;

/// Smaller blocks fit a page or two anyway.
const WORTH_IT: usize = 4 * 1024;

/// Records ready to be stored.
pub(crate) struct Packed<'a> {
    /// Their size before; 0 when they stand as they are.
    pub(crate) unpacked: u64,
    pub(crate) bytes: Cow<'a, [u8]>,
}

pub(crate) fn pack(records: &[u8]) -> Packed<'_> {
    if records.len() >= WORTH_IT {
        let bytes = lz4_flex::block::compress(records);
        if bytes.len() < records.len() {
            return Packed { unpacked: records.len() as u64, bytes: Cow::Owned(bytes) };
        }
    }
    Packed { unpacked: 0, bytes: Cow::Borrowed(records) }
}

/// Nothing when the bytes are not what was stored.
pub(crate) fn unpack(unpacked: u64, stored: &[u8]) -> Option<Vec<u8>> {
    if unpacked == 0 {
        return Some(stored.to_vec());
    }
    // No input unpacks to more than this many times its size, so a damaged number cannot claim all memory.
    let size = usize::try_from(unpacked).ok().filter(|size| *size / 256 <= stored.len())?;
    let records = lz4_flex::block::decompress(stored, size).ok()?;
    (records.len() == size).then_some(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn there_and_back(records: &[u8]) -> Option<Vec<u8>> {
        let packed = pack(records);
        unpack(packed.unpacked, &packed.bytes)
    }

    proptest! {
        #[test]
        fn records_come_back(piece in proptest::collection::vec(any::<u8>(), 0..600), times in 0usize..40) {
            let records = piece.repeat(times);
            prop_assert_eq!(there_and_back(&records), Some(records));
        }

        #[test]
        fn damage_is_seen_or_harmless(unpacked in any::<u64>(), stored in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _records = unpack(unpacked, &stored);
        }
    }

    #[test]
    fn repetition_shrinks_and_noise_stays() {
        let records = b"{\"sessionUpdate\":\"agent_message_chunk\"}".repeat(1000);
        assert!(pack(&records).bytes.len() * 10 < records.len());
        assert_eq!(pack(b"short").unpacked, 0);
        assert_eq!(there_and_back(&vec![7; 64 * 1024 * 1024]).map(|back| back.len()), Some(64 * 1024 * 1024));
    }
}
