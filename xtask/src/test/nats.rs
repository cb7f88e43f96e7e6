//! The server that tests of the fleet's engine over NATS start, from the package that brings it as a program.
//!
//! Not here: how it is started; its tests do that.

use crate::outside;
use crate::venv;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Names the program to tests.
pub(super) const VARIABLE: &str = "ACPD_NATS_SERVER";

const REQUIREMENTS: &str = include_str!("nats/requirements.txt");

/// The server's program; one that the caller names is taken as it is.
pub(super) fn server(root: &Path) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Ok(named.into());
    }
    // Beside the build, which is not kept by git either; a test that is run alone looks there too.
    let place = outside::target_directory(root).join("nats");
    Ok(venv::install(&place, REQUIREMENTS)?.join("nats-server"))
}
