//! The commands, a file each.

pub(crate) mod agents;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod stdio;
pub(crate) mod token;
pub(crate) mod top;
