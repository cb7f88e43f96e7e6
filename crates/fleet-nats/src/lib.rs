//! The engine of a fleet over NATS: entries in two buckets, an archive in a stream.
//!
//! Invariant: every write says what it has to find, so that one that comes late, or twice, changes nothing that another node has
//! done since; what decides is read from the leader of a stream. A crate of its own, so that who needs no fleet over NATS builds
//! none. Not here: what a node does with an entry, and when; `acpd-fleet` says what an engine is.

mod archive;
mod connect;
mod credentials;
mod engine;
mod entries;
mod key;
mod link;
mod reached;
mod settings;
mod streams;
mod watching;

pub use connect::NatsError;
pub use engine::Nats;
pub use reached::Reached;
pub use settings::{NatsSettings, Tls};
