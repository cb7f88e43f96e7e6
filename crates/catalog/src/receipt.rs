//! The receipt of an installed version: what it is, where it is from, and how it is run. One file beside it, written before
//! the version gets its name.

use crate::name::{AgentName, Version};
use crate::registry::Sha256;
use crate::resolve::Kind;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Its name in the directory of a version.
const FILE: &str = "receipt.json";
/// The longest that is read, in bytes.
const MOST: u64 = 16 << 20;

/// What is said of a version.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Receipt {
    /// The agent.
    pub name: AgentName,
    /// The version.
    pub version: Version,
    /// How it is had.
    pub kind: Kind,
    /// Where it is from.
    pub source: Source,
    /// Of the archive, or of the lock file, which has the hashes of all packages.
    pub sha256: Sha256,
    /// Who said what it has to be.
    pub sha256_from: Sha256From,
    /// What became of install scripts.
    pub scripts: Scripts,
    /// The program, relative to the directory of the version.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables.
    pub env: BTreeMap<String, String>,
    /// When, as in RFC 3339.
    pub installed_at: String,
}

/// Where a version is from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Source {
    /// The registry's file or address; absent where acpd knew the agent by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The package, as its tool takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The tool that installed the package: `npm`, `uv` or `pip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The address of the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
}

/// Who said what the hash has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sha256From {
    /// The registry, and the archive was held against it.
    Registry,
    /// Nothing; it is that of what came.
    Download,
    /// It is that of the lock file.
    Lock,
}

/// What became of install scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scripts {
    /// There are none.
    None,
    /// They were run.
    Run,
    /// They were left out.
    Skipped,
}

impl Receipt {
    /// Writes it into the directory of its version.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        std::fs::write(dir.join(FILE), text)
    }

    /// Reads that of a directory; None where there is none, or none of this form.
    pub fn read(dir: &Path) -> Option<Self> {
        let mut options = OpenOptions::new();
        let waits_for_nobody = OFlags::NONBLOCK.bits().cast_signed();
        let file = options.read(true).custom_flags(waits_for_nobody).open(dir.join(FILE)).ok()?;
        let mut text = Vec::new();
        file.take(MOST + 1).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}
