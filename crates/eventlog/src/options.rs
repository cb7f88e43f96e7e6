//! How a log is opened.

use std::time::Duration;

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The death of every process.
    #[default]
    Process,
    /// The loss of power too: the disk is asked to confirm each group of commits.
    Power,
}

/// How a log is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// What a commit survives.
    pub durability: Durability,
    /// The largest size of all files of sessions together, in bytes; only last words ([`Appender::append_final`](crate::Appender::append_final)) may exceed it.
    pub max_bytes: Option<u64>,
    /// How many bytes of the newest events are kept in memory, over all sessions.
    pub cache_bytes: usize,
    /// Whether what is said is indexed for [`EventLog::search`](crate::EventLog::search); without, an index that is there is dropped.
    pub search: bool,
    /// How long what live sessions are may wait to be indexed. What asks for it does not wait.
    pub index_lag: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Process,
            max_bytes: None,
            cache_bytes: 16 * 1024 * 1024,
            search: true,
            index_lag: Duration::from_millis(200),
        }
    }
}
