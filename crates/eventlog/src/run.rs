//! A run of events as bytes that leave the log: for a place where it is kept beside the log, and comes back as a block.
//!
//! Its first byte is its form, so that a later acpd knows what an earlier one has written. Not here: where it goes.

use crate::block::Block;
use crate::pack::{Packed, pack, unpack};
use bytes::{BufMut, Bytes, BytesMut};

/// The records of events, one behind the other, packed where that pays; before them their size unpacked, or 0.
const PACKED_RECORDS: u8 = 1;
/// Of the form and the size.
const HEAD: usize = 1 + size_of::<u64>();

impl Block {
    /// The events of blocks that follow one another, as bytes.
    pub fn pack_run(blocks: &[Self]) -> Bytes {
        let joined: Vec<u8>;
        let records = match blocks {
            [block] => block.records(),
            blocks => {
                joined = blocks.iter().map(Self::records).collect::<Vec<_>>().concat();
                &joined
            }
        };
        let Packed { unpacked, bytes } = pack(records);
        let mut out = BytesMut::with_capacity(HEAD + bytes.len());
        out.put_u8(PACKED_RECORDS);
        out.put_u64_le(unpacked);
        out.put_slice(&bytes);
        out.freeze()
    }

    /// The events `first..=last` behind `after` from such bytes; None when they are not exactly those, or none is behind it.
    pub fn unpack_run(first: u64, last: u64, bytes: &[u8], after: u64) -> Option<Self> {
        let (head, stored) = bytes.split_at_checked(HEAD)?;
        let (form, size) = head.split_first()?;
        let unpacked = u64::from_le_bytes(size.try_into().ok()?);
        let records = (*form == PACKED_RECORDS).then(|| unpack(unpacked, stored)).flatten()?;
        Self::checked(first, last, records.into())?.starting_at(first.max(after.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::block::BlockBuilder;

    fn blocks(of: &[&[u8]]) -> Vec<Block> {
        let block = |(first, payload): (u64, &&[u8])| {
            let mut batch = Batch::new();
            batch.push(7, 8, payload);
            BlockBuilder::whole(first, batch.records, 1).remove(0)
        };
        (1..).zip(of).map(block).collect()
    }

    // design fleet, log archive: what comes back is what was taken out, from any event on
    #[test]
    fn a_run_comes_back_as_it_was() {
        let long = b"{\"text\":\"again and again\"}".repeat(1000);
        for payloads in [vec![&b"one"[..]], vec![b"one", &long, b"", b"four"]] {
            let last = payloads.len() as u64;
            let bytes = Block::pack_run(&blocks(&payloads));
            for after in 0..last {
                let back = Block::unpack_run(1, last, &bytes, after).expect("it is whole");
                assert_eq!(back.range(), after + 1..=last);
                let back: Vec<_> =
                    back.events().map(|event| (event.kind, event.at_ms, event.payload)).collect();
                let skipped = usize::try_from(after).expect("few");
                let whole: Vec<_> = payloads[skipped..].iter().map(|payload| (7, 8, *payload)).collect();
                assert_eq!(back, whole);
            }
            assert!(Block::unpack_run(1, last, &bytes, last).is_none(), "there is none behind the last");
            assert!(Block::unpack_run(1, last + 1, &bytes, 0).is_none(), "it has fewer");
            assert!(Block::unpack_run(1, last, &bytes[..bytes.len() - 1], 0).is_none(), "it was cut off");
            let later = [&[2], &bytes[1..]].concat();
            assert!(Block::unpack_run(1, last, &later, 0).is_none(), "it is of another form");
        }
        assert!(Block::unpack_run(1, 1, b"", 0).is_none());
    }
}
