//! What lets agents outlive their host.

use acpd_record::{KeeperAddress, SessionId};
use acpd_supervisor::{KeepFor, ProcessHandle};
use acpd_terminal::{Keeping, Note};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long agents wait for the next host of the state directory, and where they are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuity {
    /// How long. Zero: those that are started here do not; those of hosts that are gone are taken over all the same.
    pub keep: Duration,
    /// Bytes of an agent's output that are kept meanwhile; then it waits.
    pub detached_bytes: u64,
    /// Where their keepers listen.
    pub directory: PathBuf,
    /// Which agents of hosts that are gone are taken over.
    pub takes_over: TakesOver,
    /// The host before has handed over to this one: what is taken over was not lost.
    pub is_handed_over: bool,
}

/// Which agents of hosts that are gone a host takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakesOver {
    /// All of them.
    All,
    /// That of this session, if the session has its agent's process for itself.
    Session(SessionId),
    /// Those that have ended meanwhile: their last words and their ends are recorded, and no agent that waits is touched.
    Ended,
}

/// The keeper of one agent process that can outlive this host.
#[derive(Debug)]
pub(crate) struct KeptProcess {
    pub(crate) address: KeeperAddress,
    continuity: Arc<Continuity>,
    is_asked: AtomicBool,
}

impl KeptProcess {
    /// Of a process that was just started, which still ends with its host.
    pub(crate) fn new(process: &ProcessHandle, continuity: Arc<Continuity>) -> Self {
        let mark = process.mark().as_str().to_owned();
        let address = KeeperAddress { mark, key: KeepFor::fresh_key(), keep_ms: millis(continuity.keep) };
        Self { address, continuity, is_asked: AtomicBool::new(false) }
    }

    /// Of a process that has outlived another host.
    pub(crate) fn found(address: KeeperAddress, continuity: Arc<Continuity>) -> Self {
        let address = KeeperAddress { keep_ms: millis(continuity.keep), ..address };
        Self { address, continuity, is_asked: AtomicBool::new(true) }
    }

    /// Whether it outlives this host.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::SeqCst)
    }

    /// How a terminal outlives this host beside it.
    pub(crate) fn terminals(&self, note: Note) -> Keeping {
        let Continuity { keep, detached_bytes, directory, .. } = (*self.continuity).clone();
        Keeping { keep, detached_bytes, directory, note }
    }

    /// Where keepers listen.
    pub(crate) fn directory(&self) -> &Path {
        &self.continuity.directory
    }

    /// A session of it is in the log: from now on it outlives this host.
    pub(crate) fn keep(&self, process: &ProcessHandle, line_limit: usize) {
        if !self.is_asked.swap(true, Ordering::SeqCst) {
            self.keep_anew(process, line_limit);
        }
    }

    /// The same of a process that another host was outlived by, whatever that host has said.
    pub(crate) fn keep_anew(&self, process: &ProcessHandle, line_limit: usize) {
        let Continuity { keep, detached_bytes, directory, .. } = (*self.continuity).clone();
        let (line_bytes, key) = (line_limit as u64, self.address.key.clone());
        process.keep(KeepFor { keep, detached_bytes, line_bytes, directory, key });
    }
}

fn millis(keep: Duration) -> u64 {
    u64::try_from(keep.as_millis()).unwrap_or(u64::MAX)
}

/// What a host that takes a session over has to know beside the log. It may hold secrets, so only the keeper has it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeptRun<'a> {
    /// The params of the request that began the run.
    #[serde(borrow)]
    pub(crate) setup: &'a RawValue,
    /// What the client calls itself that began it.
    #[serde(borrow)]
    pub(crate) client: Cow<'a, str>,
    /// The turns before the run.
    pub(crate) turns: u64,
}
