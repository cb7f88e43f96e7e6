//! Runs the fuzz target of segments over its checked-in corpus, so that the findings of a fuzzer stay found, and over changes of it.
//!
//! The target itself is compiled here, with a macro of our own in place of the fuzzer's. The seeds also show that files of format 1
//! are still read: what they hold is known to `segment_corpus/seeds.rs`.

use acpd_eventlog::segment::{SealIndex, SealTail, SegmentFlags, SegmentHeader, scan};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "segment_corpus/seeds.rs"]
mod seeds;
#[path = "../../../fuzz/fuzz_targets/segment.rs"]
#[expect(unused_attributes, reason = "a program of its own begins with them")]
mod target;

use target::segment_check;

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

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(fuzz().join("corpus/segment")).expect("the corpus can be read");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the corpus can be read").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("the corpus can be read"))).collect()
}

// design session-files 12: what holds on any input holds on each seed
#[test]
fn the_corpus_holds() {
    let corpus = corpus();
    for (path, seed) in &corpus {
        let checked = std::panic::catch_unwind(|| target::run(seed));
        assert!(checked.is_ok(), "{} fails", path.display());
    }
    assert!(corpus.len() >= seeds::all().len(), "only {} seeds", corpus.len());
}

// design session-files 12: prefixes of the seeds are what a lost tail leaves behind
#[test]
fn cut_off_seeds_hold() {
    for (_, seed) in corpus() {
        (1..=40).for_each(|cut| segment_check::check(&seed[..seed.len() * cut / 41]));
    }
}

// design session-files 3: what an earlier acpd wrote in format 1 is read as what it was. With ACPD_GOLDEN_ACCEPT=1, seeds that are
// missing are written.
#[test]
fn files_of_format_1_are_read() {
    for seed in seeds::all() {
        let path = fuzz().join("corpus/segment").join(seed.name);
        if std::env::var_os("ACPD_GOLDEN_ACCEPT").is_some() && !path.exists() {
            fs::write(&path, &seed.bytes).unwrap();
        }
        let stored = fs::read(&path).unwrap();
        for bytes in [&stored, &seed.bytes] {
            assert_eq!(payloads_of(bytes), seed.payloads, "{}", seed.name);
        }
    }
}

/// The payloads in a file, as far as it can be read.
fn payloads_of(file: &[u8]) -> Vec<Vec<u8>> {
    let header = SegmentHeader::decode(file).expect("it is whole");
    if !header.flags.has(SegmentFlags::SEALED) {
        let mut payloads = Vec::new();
        scan(file, &header.nonce, header.first_seq, |_, batch| {
            let records = batch.unpacked_records().unwrap_or_default();
            payloads.extend(seeds::payloads_in(&records));
        });
        return payloads;
    }
    let part = |place: u64, length: u64| &file[place as usize..][..length as usize];
    let Ok(tail) = SealTail::decode(file, file.len() as u64, &header) else { return Vec::new() };
    let footer = tail.decode_footer(part(tail.footer_at, tail.footer_length), &header).expect("it is whole");
    let index = SealIndex::decode(&header, &tail, &footer).expect("it is whole");
    let (mut seq, mut payloads) = (header.first_seq, Vec::new());
    while let Some(place) = index.find(seq) {
        let Ok(block) = place.decode(part(place.place, place.length), &header.nonce) else { break };
        payloads.extend(block.events().map(|event| event.payload.to_vec()));
        seq = place.last_seq() + 1;
    }
    payloads
}

/// A change of a file: bytes at a place, in place of so many.
fn any_change() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<u8>)> {
    let numbers = prop::sample::select(vec![0, 1, 8, 64, 88, 0xff, 0xffff, u32::MAX, u32::MAX - 7, 1 << 20]);
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..9),
        numbers.prop_map(|number| number.to_le_bytes().to_vec()),
    ];
    (any::<prop::sample::Index>(), prop::sample::select(vec![0, 1, 2, 4, 4, 4, 8]), bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // design session-files 12: changed seeds are read without a panic, with their checksums put right, too
    #[test]
    fn changed_seeds_hold(seed in any::<prop::sample::Index>(), changes in prop::collection::vec(any_change(), 1..4)) {
        let seeds = seeds::all();
        let mut bytes = seed.get(&seeds).bytes.clone();
        for (at, removed, put) in changes {
            let at = at.index(bytes.len() + 1);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, put);
        }
        segment_check::check(&bytes);
    }
}

// what is put right is what was written: otherwise no fuzzer gets behind the checksums
#[test]
fn checksums_are_put_right() {
    for seed in seeds::all().iter().filter(|seed| seed.is_right) {
        let mut bytes = seed.bytes.clone();
        // The checksums of the header, of the first batch or frame, and of the tail or trailer.
        let header = SegmentHeader::decode(&bytes).unwrap();
        let is_sealed = header.flags.has(SegmentFlags::SEALED);
        let behind = bytes.len() - if is_sealed { 12 } else { 4 };
        for at in [60, if is_sealed { 84 } else { 68 }, behind] {
            bytes[at] ^= 0xff;
        }
        assert!(bytes != seed.bytes && segment_check::repair(&bytes) == seed.bytes, "{}", seed.name);
    }
}

// its crates are named in a manifest of its own, which nothing else reads
#[test]
fn the_fuzz_crate_names_what_its_target_uses() {
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let check = fs::read_to_string(fuzz().join("fuzz_targets/segment_check.rs")).unwrap();
    let uses = check.lines().filter_map(|line| line.strip_prefix("use ")?.split("::").next());
    let others: Vec<&str> = uses.filter(|name| *name != "std").collect();
    assert!(others.contains(&"acpd_eventlog"), "{others:?}");
    for name in others {
        let is_named = manifest.lines().any(|line| {
            let dependency = line.split(['=', '.']).next().unwrap_or_default().trim();
            dependency.replace('-', "_") == name
        });
        assert!(is_named, "fuzz/Cargo.toml lacks {name}");
    }
}
