//! What a host has of its live sessions.

use crate::attempts::Attempts;
use crate::files::FileSlots;
use crate::registry::Registry;
use acpd_terminal::Terminals;
use std::sync::Arc;

/// The live sessions of a host, and what they share.
pub(crate) struct Sessions {
    pub(crate) live: Registry,
    pub(crate) attempts: Attempts,
    pub(crate) terminals: Arc<Terminals>,
    pub(crate) file_slots: FileSlots,
}

impl Sessions {
    pub(crate) fn new(terminals: Terminals) -> Self {
        Self {
            live: Registry::default(),
            attempts: Attempts::default(),
            terminals: Arc::new(terminals),
            file_slots: FileSlots::default(),
        }
    }
}
