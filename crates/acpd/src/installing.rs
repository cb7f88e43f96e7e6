//! Installs agents: fetches archives, runs npm, uv and pip, and puts together in a staging directory what a version consists
//! of.
//!
//! Owned by the commands of `acpd agents`. Invariants: what is fetched is fetched over TLS and within bounds; a tool is given
//! a plain name and a version, runs below a keeper, and ends with this process; no script of a package runs before it was
//! allowed. Not here: which agent it is (`crates/catalog`), and its entry in the configuration.

mod binary;
mod consent;
mod fetch;
mod npm;
mod programs;
mod proxy;
mod python;
mod told;

pub(crate) use binary::install as install_binary;
pub(crate) use consent::{Consent, yes};
pub(crate) use fetch::fetch_text;
pub(crate) use npm::{has_npm, install as install_npm, newest as newest_of_npm};
pub(crate) use programs::Programs;
pub(crate) use python::{PythonTool, Wanted, install as install_python, newest as newest_of_python};

use acpd_catalog::{Scripts, Sha256, Sha256From, Version};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256 as Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// What was put together in a staging directory.
pub(crate) struct Installed {
    pub(crate) version: Version,
    /// Relative to the directory.
    pub(crate) program: PathBuf,
    pub(crate) sha256: Sha256,
    pub(crate) sha256_from: Sha256From,
    pub(crate) scripts: Scripts,
    /// What installed the package.
    pub(crate) tool: Option<&'static str>,
}

/// Why an agent cannot be installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    #[error("cannot fetch {what}")]
    Fetch {
        what: String,
        #[source]
        source: fetch::FetchError,
    },
    #[error(
        "the archive is not the one that the registry describes: its SHA-256 is {found}, and {expected} was expected"
    )]
    Hash { found: String, expected: String },
    #[error(transparent)]
    Archive(#[from] acpd_catalog::ArchiveError),
    #[error(transparent)]
    Program(#[from] programs::ProgramError),
    #[error(transparent)]
    Npm(#[from] acpd_catalog::NpmError),
    #[error(transparent)]
    Python(#[from] acpd_catalog::PythonError),
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Unallowed(String),
    #[error("cannot write what is installed")]
    Io(#[from] io::Error),
}

/// The hash of a file.
fn hash_of_file(path: &Path) -> io::Result<Sha256> {
    let mut hasher = Hasher::new();
    let mut file = std::fs::File::open(path)?;
    let mut piece = vec![0; 64 * 1024];
    loop {
        match io::Read::read(&mut file, &mut piece)? {
            0 => return Ok(sha256(hasher)),
            read => hasher.update(&piece[..read]),
        }
    }
}

fn sha256(hasher: Hasher) -> Sha256 {
    Sha256::try_from(HEXLOWER.encode(&hasher.finalize())).expect("a hash has its form")
}
