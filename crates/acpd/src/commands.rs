//! The commands, a file each.

pub(crate) mod agents;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stdio;
pub(crate) mod token;
