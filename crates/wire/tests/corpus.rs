//! Runs the fuzz target over its checked-in corpus, so that the findings of a fuzzer stay found, and its check over generated
//! lines.
//!
//! The target itself is compiled here, with a macro of our own in place of the fuzzer's: what does not compile is seen without a
//! nightly compiler.

use std::fs;
use std::path::Path;

#[path = "corpus/generated.rs"]
mod generated;
#[path = "../../../fuzz/fuzz_targets/wire.rs"]
#[expect(unused_attributes, reason = "a program of its own begins with them")]
mod target;

use target::wire_check;

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

// FR-1, FR-2, FR-5, FR-6, FR-7, FR-8: what holds on any input holds on each seed
#[test]
fn the_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wire");
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let seed = fs::read(&path).unwrap();
        let checked = std::panic::catch_unwind(|| target::run(&seed));
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

// its crates are named in a manifest of its own, which nothing else reads
#[test]
fn the_fuzz_crate_names_what_its_target_uses() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    let check = fs::read_to_string(fuzz.join("fuzz_targets/wire_check.rs")).unwrap();
    let uses = check.lines().filter_map(|line| line.strip_prefix("use ")?.split("::").next());
    let others: Vec<&str> = uses.filter(|name| *name != "std").collect();
    assert!(others.contains(&"acpd_wire"), "{others:?}");
    for name in others {
        let is_named = manifest.lines().any(|line| {
            let dependency = line.split(['=', '.']).next().unwrap_or_default().trim();
            dependency.replace('-', "_") == name
        });
        assert!(is_named, "fuzz/Cargo.toml lacks {name}");
    }
}
