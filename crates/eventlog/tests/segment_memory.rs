//! What reading a segment takes of memory, whatever stands in it. A program of its own, because it looks at all of its memory.
#![cfg(target_os = "linux")]

use acpd_eventlog::segment::{
    BatchFlags, BatchHead, FRAME_BYTES, FramePlace, SealIndex, SealTail, SegmentFlags, SegmentHeader,
    StoredBatch, scan,
};
use std::fs;

const NONCE: [u8; 16] = *b"nonce of a test.";
const MIB: usize = 1024 * 1024;

/// A figure of this process, in bytes.
fn status(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux has it");
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse::<usize>().expect("Linux has it") * 1024
}

/// How much more address space was needed while `run` ran than ever before.
fn growth_of(run: impl FnOnce()) -> usize {
    let peak = status("VmPeak");
    // What was given back before would hide what is taken now.
    let ballast = Vec::<u8>::with_capacity(peak - status("VmSize"));
    let before = status("VmPeak");
    run();
    let growth = status("VmPeak") - before;
    drop(ballast);
    growth
}

fn frame_batch(head: &BatchHead, records: &[u8], place: u64) -> Vec<u8> {
    let framed = head.frame(BatchHead::begin(0), records, &NONCE, place).expect("it is short");
    [framed.front(), records, framed.back()].concat()
}

// design session-files 12: memory at most twice the file, or a frame, whatever a size in it says
#[test]
fn reading_takes_at_most_twice_the_file() {
    let packed = lz4_flex::block::compress(&vec![7; 100 * MIB]);
    assert!(packed.len() < MIB);
    let allowed = |file: usize| 2 * file + FRAME_BYTES + MIB;
    let claimed = 99 * MIB as u32;

    let flags = BatchFlags::PACKED;
    let head = BatchHead { flags, events: 1, first_seq: 1, unpacked: claimed, ..BatchHead::default() };
    let bytes = frame_batch(&head, &packed, 64);
    let growth = growth_of(|| {
        let batch = StoredBatch::decode(&bytes, &NONCE, 64).unwrap();
        assert!(batch.unpacked_records().is_err());
    });
    assert!(growth <= allowed(bytes.len()), "a batch: {growth}");

    let frame = frame_of(&packed, claimed);
    let place = FramePlace { place: 64, length: frame.len() as u64, first_seq: 1, events: 1 };
    let growth = growth_of(|| assert!(place.decode(&frame, &NONCE).is_err()));
    assert!(growth <= allowed(frame.len()), "a frame: {growth}");

    // The shortest batches there are, none of which counts before the last.
    let head = BatchHead { flags: BatchFlags::MORE_FOLLOWS, first_seq: 1, ..BatchHead::default() };
    let mut chain = vec![0; 64];
    while chain.len() < 40 * MIB {
        chain.extend(frame_batch(&head, &[], chain.len() as u64));
    }
    let growth = growth_of(|| assert_eq!(scan(&chain, &NONCE, 1, |_, _| {}).end, 64));
    assert!(growth <= MIB, "a chain: {growth}");

    let pairs = (0..MIB as u64).flat_map(|at| [1 + at, 64 + 24 * at].map(u64::to_le_bytes)).flatten();
    let records: Vec<u8> = [1, 0, 0, 0].into_iter().chain([0; 12]).chain(pairs).collect();
    let footer_at = 64 + 24 * MIB as u64;
    let head = BatchHead { first_seq: 1 + MIB as u64, ..BatchHead::default() };
    let footer = frame_batch(&head, &records, footer_at);
    let header = SegmentHeader {
        flags: SegmentFlags::SEALED,
        number: 1,
        first_seq: 1,
        cut: 0,
        before: 0,
        nonce: NONCE,
    };
    let tail = SealTail { footer_at, footer_length: footer.len() as u64 };
    let growth = growth_of(|| {
        let footer = tail.decode_footer(&footer, &header).unwrap();
        let index = SealIndex::decode(&header, &tail, &footer).unwrap();
        assert_eq!(index.find(MIB as u64).map(|place| place.length), Some(24));
    });
    assert!(growth <= allowed(footer.len()), "a footer: {growth}");
}

/// A frame of one event with this size in it, and a checksum that is right.
fn frame_of(packed: &[u8], unpacked: u32) -> Vec<u8> {
    let mut head = [&1_u64.to_le_bytes()[..], &1_u32.to_le_bytes()].concat();
    head.extend((packed.len() as u32).to_le_bytes());
    head.extend(unpacked.to_le_bytes());
    let gap = vec![0; (24 + packed.len()).next_multiple_of(8) - 24 - packed.len()];
    let mut hasher = crc32fast::Hasher::new();
    [&NONCE[..], &64_u64.to_le_bytes(), &head, packed, &gap].iter().for_each(|part| hasher.update(part));
    head.extend(hasher.finalize().to_le_bytes());
    [&head[..], packed, &gap].concat()
}
