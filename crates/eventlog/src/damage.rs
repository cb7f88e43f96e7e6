//! Whether the file was found damaged. Set where it was met, by a reader or the writer, and never taken back: what
//! SQLite once found malformed does not heal while it is open.

use std::sync::{Arc, OnceLock};

use crate::fault::SqliteFault;

#[derive(Default)]
pub(crate) struct Damage(OnceLock<Arc<SqliteFault>>);

impl Damage {
    /// Looks at an error.
    pub(crate) fn seen(&self, error: rusqlite::Error) -> Arc<SqliteFault> {
        let fault = Arc::new(SqliteFault::from(error));
        self.see(&fault);
        fault
    }

    /// The same, of one that was told already.
    pub(crate) fn see(&self, fault: &Arc<SqliteFault>) {
        if fault.is_damage() && self.0.set(Arc::clone(fault)).is_ok() {
            tracing::error!(error = %fault, "the event log is damaged");
        }
    }

    /// What was found, if anything was.
    pub(crate) fn found(&self) -> Option<Arc<SqliteFault>> {
        self.0.get().cloned()
    }
}
