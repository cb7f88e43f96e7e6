//! Feeds arbitrary bytes to acpd-wire. It also runs over the corpus as a plain test, in crates/wire/tests.
#![no_main]

pub(crate) mod wire_check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| wire_check::check(input));
