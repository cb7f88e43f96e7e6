//! `cargo xtask openapi`: writes `docs/openapi.json`, the description of REST, which the daemon serves as it lies there.
//!
//! Not here: making it, which is a test of the gateway, so that the product is built without what makes it. The same test
//! fails while the file is another.

use crate::run::{self, Counts};
use anyhow::Result;
use std::path::Path;

pub(crate) const FILE: &str = "docs/openapi.json";

/// The test that makes it, and what tells it to write the file.
const TEST: &str =
    "cargo test --quiet --locked -p acpd-gateway --lib the_document_is_the_one_that_is_checked_in";
const RENEW: &str = "ACPD_RENEW_OPENAPI";

/// Runs the command.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut command = run::line(TEST, root);
    command.env(RENEW, "1");
    run::run(command, &mut Counts::default())
}
