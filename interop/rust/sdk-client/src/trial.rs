//! One start of a peer: its directory, and the marks by which its processes are known.
//!
//! The mark goes into the environment of the program that is started and from there to all below it. acpd puts a
//! mark of its own on what it supervises; those seen while the trial runs are remembered, so that a process is also
//! found if it lost ours.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use agent_client_protocol::AcpAgentConfig;
use tempfile::TempDir;

use crate::peer::Peer;
use crate::processes::{Process, carrying};

const MARK: &str = "INTEROP_RUN";

/// Of a clone, the directory is the same; it goes with the last.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    directory: Arc<TempDir>,
    marks: BTreeSet<String>,
}

impl Trial {
    pub(crate) fn prepare(peer: &Peer) -> io::Result<Self> {
        let config = match peer {
            Peer::Hosted { config, .. } => Some(config.as_str()),
            Peer::Example | Peer::Program(_) => None,
        };
        Self::with_config(config)
    }

    /// With a configuration of acpd in its directory, if there is one.
    pub(crate) fn with_config(config: Option<&str>) -> io::Result<Self> {
        let directory = Arc::new(tempfile::Builder::new().prefix("acpd-interop-").tempdir()?);
        if let Some(config) = config {
            std::fs::write(directory.path().join(Peer::CONFIG_FILE), config)?;
        }
        // The directory's name is the trial's alone, as long as the trial lasts.
        let marks = BTreeSet::from([format!("{MARK}={}", directory.path().display())]);
        Ok(Self { directory, marks })
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn launch(&self, peer: &Peer) -> AcpAgentConfig {
        let (name, value) = self.mark();
        peer.launch(self.directory()).env(name, value)
    }

    /// The variable by which processes of this trial are known.
    pub(crate) fn mark(&self) -> (&'static str, String) {
        (MARK, self.directory().display().to_string())
    }

    /// The processes of this trial now; remembers acpd's marks.
    pub(crate) fn look(&mut self) -> io::Result<Vec<Process>> {
        let processes = carrying(&self.marks)?;
        self.marks.extend(processes.iter().filter_map(|process| process.acpd_mark.clone()));
        Ok(processes)
    }

    /// Whether a look has found something that acpd supervises.
    pub(crate) fn has_seen_supervised(&self) -> bool {
        self.marks.len() > 1
    }
}
