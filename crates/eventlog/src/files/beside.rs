//! The index of sessions and the notes for subscribers, which the writer's thread writes beside the files.
//!
//! Neither is needed by a session: what cannot be written waits, and is written later.

use super::rows::Change;
use super::{Files, write};
use crate::damage::Damage;
use crate::failure::WriteError;
use crate::log_files::OpenLog;
use crate::notes::{self, SessionNotes};
use crate::outbox::{NamedNote, Subscriber};
use crate::reclaiming::Left;
use crate::session_files::CatchUp;
use crate::thread::Thread;
use crate::writer::Writer;
use rusqlite::{Connection, Transaction};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// What the writer's thread writes.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) files: Arc<Files>,
    /// What the index lacks since before it was opened.
    pub(crate) catch_up: Option<CatchUp>,
    /// The notes, and their file.
    pub(crate) hooks: (PathBuf, Connection),
    /// That file is the log's.
    pub(crate) _open_hooks: OpenLog,
    /// Their damage, which is told once.
    pub(crate) hooks_damage: Damage,
    /// Syncs segments, where commits survive the loss of power.
    pub(crate) syncing: Option<Thread>,
    /// Hosts whose subscribers are in the notes.
    pub(crate) noted_hosts: BTreeSet<String>,
}

impl Beside {
    /// The log ends: what is written is synced, if it is to be, and hosts that have no session are forgotten.
    pub(crate) fn end(&mut self) {
        self.stop();
        if let Some(thread) = self.syncing.take()
            && !thread.join()
        {
            tracing::error!("the thread died that syncs what sessions have written");
        }
        self.files.end_hosts();
    }

    /// Has the thread end that syncs.
    pub(crate) fn stop(&self) {
        if let Some(redo) = &self.files.redo {
            redo.stop();
        }
    }
}

impl Writer {
    /// When the index is to be written.
    pub(crate) fn rows_due(&self) -> Option<Instant> {
        self.beside.files.rows.due()
    }

    pub(crate) fn is_catching_up(&self) -> bool {
        self.beside.catch_up.is_some()
    }

    /// Tells the index what sessions are now, and notes what subscribers are to be told of. What cannot be written is written later.
    pub(crate) fn write_rows(&mut self) {
        if let Some((changes, ())) = self.take_with_rows(|_| Some(()))
            && !changes.is_empty()
            && let Err(error) = self.write_changes(&changes, 0, |_| Ok(()))
        {
            tracing::debug!(%error, "the index is written later");
        }
    }

    /// Takes what waits under the id of a session, and at the same moment what the index is to be told, with which it is to be written.
    pub(crate) fn take_with_rows<T>(
        &self,
        take: impl FnOnce(&Self) -> Option<T>,
    ) -> Option<(Vec<Change>, T)> {
        self.beside.files.rows.take_with(|| take(self))
    }

    /// Writes that, of so many bytes, in one transaction with what the index is told. Tried once, and only the latter where room is short.
    pub(crate) fn write_with_rows<T>(
        &mut self,
        changes: &[Change],
        bytes: usize,
        write: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, WriteError> {
        match self.check_plenty() {
            Ok(()) => self.write_changes(changes, bytes, write),
            Err(shortage) => {
                // It is told again if that fails.
                drop(self.write_changes(changes, 0, |_| Ok(())));
                Err(shortage)
            }
        }
    }

    /// The same without a look at the room.
    pub(crate) fn write_changes<T>(
        &mut self,
        changes: &[Change],
        bytes: usize,
        also: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, WriteError> {
        let files = Arc::clone(&self.beside.files);
        // Notes may come twice, so they go first.
        let written = self.write_notes(&files, changes).and_then(|()| {
            self.transact(bytes, |transaction| {
                write(transaction, changes)?;
                also(transaction)
            })
        });
        files.rows.written(written.is_ok(), super::live_segment::now());
        let written = written?;
        if changes.iter().any(|change| change.replaces) {
            self.expect(Left::Turns);
        }
        let is_live = |id: &str| self.live().get(id).is_some();
        for change in changes {
            match &change.row {
                Some(row) => {
                    files.seal_later(row);
                    if row.session.owner.is_none() {
                        files.forget_change(&change.id, || is_live(&change.id));
                    }
                }
                None => files.forget_change(&change.id, || is_live(&change.id)),
            }
            if let Some(from) = &change.from {
                files.forget_change(from, || is_live(from));
            }
        }
        Ok(written)
    }

    fn write_notes(&mut self, files: &Files, changes: &[Change]) -> Result<(), WriteError> {
        let is_noted = !files.subscribers.read().all.is_empty();
        let mut all = Vec::new();
        for change in changes {
            if let Some(from) = &change.from {
                self.with_notes(|hooks| notes::rename(hooks, from, &change.id))?;
            }
            if change.replaces || change.row.is_none() {
                self.with_notes(|hooks| notes::delete(hooks, &change.id))?;
            }
            match &change.row {
                Some(row) if is_noted || !change.notes.is_empty() => all.push(SessionNotes {
                    session: change.id.clone(),
                    upto: row.session.last_seq,
                    notes: change.notes.clone(),
                }),
                Some(_) | None => {}
            }
        }
        if all.is_empty() {
            return Ok(());
        }
        self.with_notes(|hooks| notes::write(hooks, &all))?;
        if all.iter().any(|noted| !noted.notes.is_empty()) {
            self.subscribers().tell();
        }
        Ok(())
    }

    /// Does something with the notes.
    pub(crate) fn with_notes<T>(
        &mut self,
        act: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, WriteError> {
        let Beside { hooks: (path, hooks), hooks_damage, .. } = &mut self.beside;
        act(hooks).map_err(|error| {
            let error = WriteError::from_sqlite(error, path);
            if let WriteError::Damaged { source } = &error {
                hooks_damage.see(source);
            }
            error
        })
    }

    /// Has the notes say for whom the hosts of this process note, if that changed.
    pub(crate) fn note_hosts(&mut self) {
        self.beside.noted_hosts.clear();
        let hosts: Vec<String> = self.beside.files.host_names();
        for host in hosts {
            self.note_host(&host);
        }
    }

    /// The same of a host that begins.
    pub(crate) fn note_host(&mut self, host: &str) {
        let subscribers = self.subscribers().all.clone();
        let live: Vec<(String, u64)> = self.live().of_host(host);
        if self.beside.noted_hosts.contains(host) {
            return;
        }
        match self.with_notes(|hooks| notes::subscribe(hooks, host, &subscribers, &live)) {
            Ok(()) => drop(self.beside.noted_hosts.insert(host.to_owned())),
            Err(error) => {
                tracing::warn!(%error, "what hooks are to be told of does not outlive this process")
            }
        }
    }

    /// Notes what a host that died has not noted of a session, before another claims that. What cannot be written, the claimer writes.
    pub(crate) fn derive_notes(&mut self, id: &str, host: &str) -> Vec<NamedNote> {
        let beside = &self.beside;
        if beside.files.host_names().iter().any(|own| own == host) {
            return Vec::new();
        }
        let derived = derive(&beside.files, &beside.hooks.1, id, host);
        let Some(derived) = derived else { return Vec::new() };
        match self.with_notes(|hooks| notes::write(hooks, std::slice::from_ref(&derived))) {
            Ok(()) => {
                self.subscribers().tell();
                Vec::new()
            }
            Err(error) => {
                tracing::warn!(session = id, %error, "hooks are told later of what a host has not noted");
                derived.notes
            }
        }
    }

    /// A host is gone, and all that it has not noted was derived.
    pub(crate) fn forget_noting(&mut self, host: &str) {
        if let Err(error) = self.with_notes(|hooks| notes::forget_subscribers(hooks, host)) {
            tracing::debug!(%error, "for whom a host has noted is forgotten with the next one of its name");
        }
    }

    /// Notes a piece of what the index lacks. False: it lacks nothing.
    pub(crate) fn catch_up_piece(&mut self) -> bool {
        let Some(mut catch_up) = self.beside.catch_up.take() else { return false };
        let files = Arc::clone(&self.beside.files);
        let caught_up = files.catch_up_piece(&mut catch_up, self.live());
        if let Err(error) = &caught_up {
            tracing::warn!(%error, "the index of sessions is compared with them at the next start");
        }
        self.beside.catch_up = Some(catch_up).filter(|catch_up| caught_up.is_ok() && catch_up.left() > 0);
        true
    }
}

/// What a host that died would have noted of a session. None: nothing, or it cannot be told, which is said.
fn derive(files: &Files, hooks: &Connection, id: &str, host: &str) -> Option<SessionNotes> {
    let subscribers: Vec<Subscriber> = notes::subscribers(hooks, host).unwrap_or_default();
    if subscribers.is_empty() {
        return None;
    }
    let derive = || -> Result<Option<SessionNotes>, Box<dyn std::error::Error>> {
        let Some(directory) = files.anybody.find(id)? else { return Ok(None) };
        Ok(Some(notes::derive(&directory, host, notes::noted(hooks, id)?, &subscribers)?))
    };
    derive().unwrap_or_else(|error| {
        tracing::warn!(session = id, error = &*error, "hooks are not told of what a host has not noted");
        None
    })
}

#[cfg(test)]
mod tests;
