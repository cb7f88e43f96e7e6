//! Feeds arbitrary bytes to the segments of acpd-eventlog, open and sealed. It also runs over the corpus as a plain test, in
//! crates/eventlog/tests.
#![no_main]

pub(crate) mod segment_check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| segment_check::check(input));
