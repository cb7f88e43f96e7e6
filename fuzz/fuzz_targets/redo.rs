//! Feeds arbitrary bytes to the redo files of acpd-eventlog. It also runs over the corpus as a plain test, in crates/eventlog/tests.
#![no_main]

pub(crate) mod redo_check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| redo_check::check(input));
