//! Runs the fuzz target of redo files over its checked-in corpus, so that the findings of a fuzzer stay found, and over changes of it.
//!
//! The target itself is compiled here, with a macro of our own in place of the fuzzer's. The seeds also show that files of format 1 are
//! still read.

use acpd_eventlog::redo::{RedoEntries, RedoEntry, RedoHeader};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/fuzz_targets/redo.rs"]
#[expect(unused_attributes, reason = "a program of its own begins with them")]
mod target;

use target::redo_check;

// The target names the fuzzer's crate, which is this one here.
extern crate self as libfuzzer_sys;

/// What the fuzzer calls, as a function.
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: &[u8]| $body:expr) => {
        pub(crate) fn run($input: &[u8]) {
            $body;
        }
    };
}

const HEADER: RedoHeader = RedoHeader { generation: 3, boot: [4; 16], nonce: *b"nonce of a seed." };
const ENTRIES: [(&str, u32, u64, &[u8]); 3] =
    [("s-1", 1, 64, b"batches"), ("another, long id", u32::MAX, 1 << 40, b""), ("", 2, 0, &[0xff; 300])];

/// The name of a seed, its bytes, and how many entries it has.
fn seeds() -> Vec<(&'static str, Vec<u8>, usize)> {
    let mut whole = HEADER.encode().to_vec();
    for (session, segment, offset, batches) in ENTRIES {
        assert!(RedoEntry { session, segment, offset, batches }.put(&mut whole, 0, &HEADER.nonce));
    }
    let torn = whole[..whole.len() - 9].to_vec();
    let zeros = [&whole[..], &[0; 64]].concat();
    vec![
        ("empty", HEADER.encode().to_vec(), 0),
        ("torn", torn, 2),
        ("whole", whole, 3),
        ("zeros-behind", zeros, 3),
    ]
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/redo")
}

// design session-files 12: what holds on any input holds on each seed, and on each of its prefixes
#[test]
fn the_corpus_holds() {
    let mut count = 0;
    for entry in fs::read_dir(corpus()).unwrap() {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        target::run(&seed);
        (1..=40).for_each(|cut| redo_check::check(&seed[..seed.len() * cut / 41]));
        count += 1;
    }
    assert!(count >= seeds().len(), "only {count} seeds");
}

// design session-files 5: what an earlier acpd wrote in format 1 is read as what it was. With ACPD_GOLDEN_ACCEPT=1, seeds that are
// missing are written.
#[test]
fn files_of_format_1_are_read() {
    for (name, bytes, count) in seeds() {
        let path = corpus().join(name);
        if std::env::var_os("ACPD_GOLDEN_ACCEPT").is_some() && !path.exists() {
            fs::create_dir_all(corpus()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        for bytes in [&fs::read(&path).unwrap(), &bytes] {
            let header = RedoHeader::decode(bytes).unwrap();
            let found = RedoEntries::new(bytes, &header);
            let found: Vec<_> =
                found.map(|entry| (entry.session, entry.segment, entry.offset, entry.batches)).collect();
            assert_eq!((header, &found[..]), (HEADER, &ENTRIES[..count]), "{name}");
        }
    }
}

// what is put right is what was written: otherwise no fuzzer gets behind the checksums
#[test]
fn checksums_are_put_right() {
    let whole = seeds().remove(2).1;
    let mut bytes = whole.clone();
    for at in [60, 64 + 4] {
        bytes[at] ^= 0xff;
    }
    assert!(bytes != whole && redo_check::repair(&bytes) == whole);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // design session-files 12: changed seeds are read without a panic, with their checksums put right, too
    #[test]
    fn changed_seeds_hold(
        seed in 0..4_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..9_usize, prop::collection::vec(any::<u8>(), 0..9)), 1..4),
    ) {
        let mut bytes = seeds().remove(seed).1;
        for (at, removed, put) in changes {
            let at = at.index(bytes.len() + 1);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, put);
        }
        redo_check::check(&bytes);
    }
}
