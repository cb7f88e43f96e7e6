//! What an engine over NATS is told: where it is, how it is reached, and how long things are kept there.
//!
//! Not here: how this is read from a configuration.

use std::path::PathBuf;
use std::time::Duration;

/// Where the engine is, and how it is used (contract 7.2).
#[derive(Debug, Clone)]
pub struct NatsSettings {
    /// Addresses of its servers, as `nats://host:4222` or `tls://host:4222`.
    pub urls: Vec<String>,
    /// What all names of this fleet there begin with; fleets with different ones share a server.
    pub prefix: String,
    /// A file with what the operator of the servers gave this node.
    pub credentials: Option<PathBuf>,
    /// For servers that are reached by TLS; None: the machine's authorities, if an address says so.
    pub tls: Option<Tls>,
    /// How long the entry of a node is there after it was last said. All nodes of a fleet have the same.
    pub lease: Duration,
    /// On how many servers everything is kept. None: on three, or on as many as there are.
    pub replicas: Option<usize>,
    /// How long pieces of logs are kept.
    pub archive_age: Duration,
    /// How many bytes of pieces are kept, the newest; None: all.
    pub archive_bytes: Option<u64>,
    /// How long a call may take.
    pub patience: Duration,
}

/// Files for TLS, in PEM.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// The authorities that servers are known by, instead of the machine's.
    pub ca: Option<PathBuf>,
    /// The certificate of this node and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl NatsSettings {
    /// Servers without access control, with what contract 7.2 has where nothing is said.
    pub fn new(urls: Vec<String>) -> Self {
        Self {
            urls,
            prefix: "acpd".to_owned(),
            credentials: None,
            tls: None,
            lease: Duration::from_secs(20),
            replicas: None,
            archive_age: Duration::from_hours(30 * 24),
            archive_bytes: None,
            patience: Duration::from_secs(4),
        }
    }
}
