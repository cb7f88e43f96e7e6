//! The terminals of all owners, by id. An index of handles and nothing more: what a terminal is, its task knows.

use crate::handle::{TerminalHandle, TerminalNotFound};
use crate::spec::TerminalId;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

type Owned = BTreeMap<TerminalId, TerminalHandle>;

/// Terminals by owner and id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(Arc<Mutex<HashMap<String, Owned>>>);

impl Table {
    // Held only to look something up or change it, never while waiting.
    fn owners(&self) -> MutexGuard<'_, HashMap<String, Owned>> {
        self.0.lock()
    }

    /// Adds a terminal, unless its owner has `limit` of them already. It goes again with the guard that is
    /// returned, unless that is kept.
    pub(crate) fn insert(&self, owner: &str, handle: TerminalHandle, limit: usize) -> Option<InsertGuard> {
        let mut owners = self.owners();
        if owners.get(owner).map_or(0, Owned::len) >= limit {
            return None;
        }
        let id = handle.id().clone();
        owners.entry(owner.to_owned()).or_default().insert(id.clone(), handle);
        Some(InsertGuard { table: self.clone(), owner: owner.to_owned(), id: Some(id) })
    }

    pub(crate) fn get(&self, owner: &str, id: &TerminalId) -> Result<TerminalHandle, TerminalNotFound> {
        let owners = self.owners();
        let handle = owners.get(owner).and_then(|owned| owned.get(id)).cloned();
        handle.ok_or_else(|| TerminalNotFound { terminal: id.clone() })
    }

    pub(crate) fn all_of(&self, owner: &str) -> Vec<TerminalHandle> {
        self.owners().get(owner).into_iter().flat_map(Owned::values).cloned().collect()
    }

    pub(crate) fn remove(&self, owner: &str, id: &TerminalId) -> Result<TerminalHandle, TerminalNotFound> {
        let mut owners = self.owners();
        let owned = owners.get_mut(owner);
        let handle = owned.and_then(|owned| owned.remove(id));
        if owners.get(owner).is_some_and(Owned::is_empty) {
            owners.remove(owner);
        }
        handle.ok_or_else(|| TerminalNotFound { terminal: id.clone() })
    }

    pub(crate) fn remove_all(&self, owner: &str) -> Vec<TerminalHandle> {
        self.owners().remove(owner).unwrap_or_default().into_values().collect()
    }
}

/// Removes a terminal from the table when it is dropped, unless its command was started.
#[derive(Debug)]
pub(crate) struct InsertGuard {
    table: Table,
    owner: String,
    /// None when the terminal is to stay.
    id: Option<TerminalId>,
}

impl InsertGuard {
    /// The terminal stays, unless it was released meanwhile.
    pub(crate) fn keep(mut self) -> Result<TerminalId, TerminalNotFound> {
        let id = self.id.take().expect("it is taken here only");
        self.table.get(&self.owner, &id).map(|_| id)
    }
}

impl Drop for InsertGuard {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            let _released_meanwhile = self.table.remove(&self.owner, id);
        }
    }
}
