//! `cargo xtask openapi`: writes `docs/openapi.json`, the description of REST, as the built daemon serves it.
//!
//! Not here: making it, which is the gateway's; a test there fails while the file is another.

use crate::daemon::{Daemon, DaemonError};
use serde_json::Value;
use std::io;
use std::path::Path;

pub(crate) const FILE: &str = "docs/openapi.json";

/// Why there is no description.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenapiError {
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[error("what the daemon serves as /openapi.json cannot be read")]
    Read(#[source] io::Error),
    #[error("what the daemon serves as /openapi.json is no JSON")]
    Json(#[source] serde_json::Error),
    #[error("cannot write {FILE}")]
    Write(#[source] io::Error),
}

/// Runs the command; true when it wrote the file.
pub(crate) fn run(root: &Path) -> bool {
    match write(root) {
        Ok(()) => true,
        Err(error) => {
            anstream::eprintln!("{}", crate::with_causes(&error));
            false
        }
    }
}

fn write(root: &Path) -> Result<(), OpenapiError> {
    let daemon = Daemon::start()?;
    let text = served(&daemon)?;
    daemon.stop()?;
    std::fs::write(root.join(FILE), text).map_err(OpenapiError::Write)
}

/// What the daemon says of itself, in the form of the file.
pub(crate) fn served(daemon: &Daemon) -> Result<String, OpenapiError> {
    let text = daemon.ask("GET", "/openapi.json", &[], "")?.text().map_err(OpenapiError::Read)?;
    let document: Value = serde_json::from_str(&text).map_err(OpenapiError::Json)?;
    serde_json::to_string_pretty(&document).map(|text| text + "\n").map_err(OpenapiError::Json)
}
