//! One start of a peer: its directory, and the marks by which its processes are known.
//!
//! The mark goes into the environment of the program that is started and from there to all below it. acpd puts a
//! mark of its own on what it supervises; those seen while the trial runs are remembered, so that a process is also
//! found if it lost ours.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use agent_client_protocol::AcpAgentConfig;
use tempfile::TempDir;

use crate::peer::Peer;
use crate::processes::{Process, carrying};

const MARK: &str = "INTEROP_RUN";

#[derive(Debug)]
pub(crate) struct Trial {
    directory: TempDir,
    marks: BTreeSet<String>,
}

impl Trial {
    pub(crate) fn prepare(peer: &Peer) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("acpd-interop-").tempdir()?;
        if let Peer::Hosted { config, .. } = peer {
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
        peer.launch(self.directory()).env(MARK, self.directory().display().to_string())
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
