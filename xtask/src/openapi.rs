//! `cargo xtask openapi`: writes `docs/openapi.json`, the description of REST, which the daemon serves as it lies there.
//!
//! Not here: making it, which is a test of the gateway, so that the product is built without what makes it. The same test
//! fails while the file is another.

use crate::child::{self, CommandLine, Counts};
use crate::daemon::{Daemon, DaemonError};
use std::io;
use std::path::Path;

pub(crate) const FILE: &str = "docs/openapi.json";

/// The test that makes it, and what tells it to write the file.
const TEST: &str = "test --quiet --locked -p acpd-gateway --lib the_document_is_the_one_that_is_checked_in";
const RENEW: &str = "ACPD_RENEW_OPENAPI";

/// Why there is no description.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenapiError {
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[error("what the daemon serves as /openapi.json cannot be read")]
    Read(#[source] io::Error),
    #[error("what the daemon serves as /openapi.json is no JSON")]
    Json(#[source] serde_json::Error),
}

/// Runs the command; true when it wrote the file.
pub(crate) fn run(root: &Path) -> bool {
    let line = CommandLine::new("cargo", TEST, root).with_env(RENEW, "1");
    match child::run(&line, &mut Counts::default(), &mut io::stdout()) {
        Ok(()) => true,
        Err(error) => {
            anstream::eprintln!("{}", crate::with_causes(&error));
            false
        }
    }
}

/// What the daemon says of itself.
pub(crate) fn served(daemon: &Daemon) -> Result<String, OpenapiError> {
    daemon.ask("GET", "/openapi.json", &[], "")?.text().map_err(OpenapiError::Read)
}
