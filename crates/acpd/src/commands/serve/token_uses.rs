//! When each token was last used, over restarts of the daemon: `token-uses.json` in the state directory.
//!
//! Coarse: written at most once a minute, and at the end; a crash loses the last minute. It has names and the beginnings of
//! hashes, nothing that opens a door. Not here: what counts as a use.

use acpd_gateway::Tokens;
use acpd_supervisor::{open_regular, read_regular};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// The longest file that is read, in bytes.
const MOST: u64 = 16 << 20;

/// How often they are written.
pub(super) const PACE: Duration = Duration::from_secs(60);

/// The file, and what is in it.
pub(super) struct TokenUses {
    path: PathBuf,
    kept: BTreeMap<String, i64>,
}

impl TokenUses {
    /// Tells the tokens what an earlier daemon knew of them.
    pub(super) fn recall(state_dir: &std::path::Path, tokens: &Tokens) -> Self {
        let path = state_dir.join("token-uses.json");
        let read = read_regular(&path, MOST).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let kept = read.unwrap_or_default();
        tokens.recall(&kept);
        Self { path, kept }
    }

    /// Writes what is new.
    pub(super) fn keep(&mut self, tokens: &Tokens) {
        let uses = tokens.uses();
        if uses == self.kept {
            return;
        }
        match self.write(&uses) {
            Ok(()) => self.kept = uses,
            Err(error) => {
                let path = self.path.display();
                tracing::debug!(%path, %error, "cannot note when tokens were used");
            }
        }
    }

    fn write(&self, uses: &BTreeMap<String, i64>) -> std::io::Result<()> {
        let copy = self.path.with_extension("json.new");
        let mut options = OpenOptions::new();
        let mut file = open_regular(&copy, options.write(true).create(true).truncate(true).mode(0o600))?;
        file.write_all(&serde_json::to_vec(uses)?)?;
        std::fs::rename(&copy, &self.path)
    }
}
