//! How a chat comes to its end. Not here: what becomes of the session then (`leaving.rs`).

use crate::exit::{Code, Failure};

/// Why the chat is over.
pub(super) enum Over {
    Left {
        interrupted: bool,
    },
    /// The session is left to the daemon.
    Detached,
    /// The terminal is gone, and the daemon is not.
    HungUp,
    /// The host is gone.
    Lost,
}

impl Over {
    /// What comes of the chat, unless more is known.
    pub(super) fn outcome(&self) -> Result<(), Failure> {
        match self {
            Self::Left { interrupted: true } => Err(Failure::Told(Code::Interrupted)),
            Self::Left { interrupted: false } | Self::Detached | Self::HungUp | Self::Lost => Ok(()),
        }
    }
}
