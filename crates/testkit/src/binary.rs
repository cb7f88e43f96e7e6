//! Where the binary under test is. Without an owner; read once per start.
//!
//! Invariant: it is the one of the same build as the tests, never one from `PATH`.

use std::path::PathBuf;

/// The path of `acpd`, next to the tests in the target directory, or to the program that is this process.
///
/// # Panics
/// When it was not built.
pub fn acpd() -> PathBuf {
    let test = std::env::current_exe().expect("a process knows its program");
    let deps = test.ancestors().find(|path| path.ends_with("deps"));
    let binary = deps.unwrap_or(&test).with_file_name("acpd");
    assert!(
        binary.is_file(),
        "{} is missing: run `cargo build --workspace --bins` first (`cargo xtask test` does)",
        binary.display()
    );
    binary
}
