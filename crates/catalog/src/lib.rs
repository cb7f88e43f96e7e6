//! The agents that acpd knows by name: a built-in table.
//!
//! Not here: the configuration, ACP, sessions.

mod known;

pub use known::{Companion, KNOWN, Known, Login, Package, Place, Wanted, known};
