//! Whether a database of a log was found damaged, which is said once, by whoever meets it, a reader or the writer.

use std::sync::{Arc, OnceLock};

use crate::fault::SqliteFault;
use crate::part::LogPart;

#[derive(Debug, Default)]
pub(crate) struct Damage(OnceLock<Arc<SqliteFault>>);

impl Damage {
    /// Looks at an error of the index.
    pub(crate) fn seen(&self, error: rusqlite::Error) -> Arc<SqliteFault> {
        let fault = Arc::new(SqliteFault::new(error, LogPart::Index));
        self.see(&fault);
        fault
    }

    /// The same, of one that was told already.
    pub(crate) fn see(&self, fault: &Arc<SqliteFault>) {
        if fault.is_damage() && self.0.set(Arc::clone(fault)).is_ok() {
            tracing::error!(error = %fault, "{}", fault.of_damage());
        }
    }
}
