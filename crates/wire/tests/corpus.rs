//! Runs the fuzz target's check over its checked-in corpus, so that the findings of a fuzzer stay found, and over generated
//! lines.

use std::fs;
use std::path::Path;

#[path = "corpus/generated.rs"]
mod generated;
#[path = "../../../fuzz/fuzz_targets/wire_check.rs"]
mod wire_check;

// FR-1, FR-2, FR-5, FR-6, FR-7, FR-8: what holds on any input holds on each seed
#[test]
fn the_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wire");
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let seed = fs::read(&path).unwrap();
        let checked = std::panic::catch_unwind(|| wire_check::check(&seed));
        assert!(checked.is_ok(), "{} fails", path.display());
        seeds += 1;
    }
    assert!(seeds >= 12, "only {seeds} seeds in {}", folder.display());
}

// FR-5: prefixes of the seeds are what a dying peer leaves behind
#[test]
fn cut_off_seeds_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wire");
    for entry in fs::read_dir(&folder).unwrap() {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        for cut in 1..=16 {
            wire_check::check(&seed[..seed.len() * cut / 17]);
        }
    }
}
