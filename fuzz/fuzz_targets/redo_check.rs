//! What holds for a redo file of acpd-eventlog on any input, as one function for the fuzzer and for the corpus test.
//!
//! The input is the file itself. It is read as it is, and once more with all checksums put right, as no fuzzer guesses them. Not here:
//! what becomes of the entries, which the tests of the crate show.

use acpd_eventlog::redo::{REDO_HEADER_BYTES, RedoEntries, RedoHeader};
use crc32fast::Hasher;

/// Panics when something does not hold.
pub(crate) fn check(input: &[u8]) {
    check_file(input);
    check_file(&repair(input));
}

fn check_file(file: &[u8]) {
    let Ok(header) = RedoHeader::decode(file) else { return };
    assert_eq!(RedoHeader::decode(&header.encode()), Ok(header));
    let mut written = header.encode().to_vec();
    for entry in RedoEntries::new(file, &header) {
        assert!(entry.session.len() + entry.batches.len() < file.len());
        assert!(entry.end() >= entry.offset);
        assert!(entry.put(&mut written, 0, &header.nonce), "it came from a file");
    }
    // What was read is what was written, wherever that has padding.
    let all: Vec<_> = RedoEntries::new(file, &header).collect();
    let again: Vec<_> = RedoEntries::new(&written, &header).collect();
    assert_eq!(all, again);
}

/// The same file with all checksums right that can be found in it.
pub(crate) fn repair(input: &[u8]) -> Vec<u8> {
    let mut file = input.to_vec();
    if file.len() < REDO_HEADER_BYTES {
        return file;
    }
    file[..8].copy_from_slice(b"acpdredo");
    let checksum = crc32fast::hash(&file[..60]);
    file[60..64].copy_from_slice(&checksum.to_le_bytes());
    let nonce: [u8; 16] = file[40..56].try_into().expect("it has as many");
    let mut at = REDO_HEADER_BYTES;
    while let Some(bytes) = file.get(at..at + 4) {
        let length = u32::from_le_bytes(bytes.try_into().expect("there are four")) as usize;
        if length < 32 || !length.is_multiple_of(8) || file.len() - at < length {
            break;
        }
        let mut hasher = Hasher::new();
        hasher.update(&nonce);
        hasher.update(&(at as u64).to_le_bytes());
        hasher.update(&file[at..at + 4]);
        hasher.update(&file[at + 8..at + length]);
        let checksum = hasher.finalize();
        file[at + 4..at + 8].copy_from_slice(&checksum.to_le_bytes());
        at += length;
    }
    file
}
