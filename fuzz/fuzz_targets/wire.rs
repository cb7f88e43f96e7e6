//! Feeds arbitrary bytes to acpd-wire. The check also runs over the corpus as a plain test, in crates/wire/tests.
#![no_main]

mod wire_check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| wire_check::check(input));
