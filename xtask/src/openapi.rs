//! `cargo xtask openapi`: writes `docs/openapi.json`, the description of REST, which the daemon serves as it lies there, and
//! `docs/schema`: the schemas of events, of the lines of `acpd run --format json`, of what hooks are told and of the
//! configuration; and `docs/reference`: the pages of the book that say what commands and keys there are.
//!
//! Not here: making them, which are tests of the crates whose types they are, so that the product is built without what makes
//! them. The same tests fail while a file is another.

use crate::run::{self, Counts};
use anyhow::Result;
use std::path::Path;

pub(crate) const FILE: &str = "docs/openapi.json";

/// The tests that make them, and what tells it to write the files.
const TEST: &str = "cargo test --quiet --locked -p acpd-api -p acpd --lib the_files_are_what_the_code_says";
const RENEW: &str = "ACPD_RENEW_OPENAPI";

/// Runs the command.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut command = run::line(TEST, root);
    command.env(RENEW, "1");
    run::run(command, &mut Counts::default())
}
