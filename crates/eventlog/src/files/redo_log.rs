//! What a log over session files keeps for the loss of power: redo files, and a thread that makes them needless.
//!
//! The writer thread appends to the redo files what it commits, one sync for a group of all sessions; each second another thread syncs
//! the segments and has the redo files begin anew. Invariants: an entry is in a redo file until its segment is synced; the writer
//! holds the lock from the redo file until all segments of the group are written, so that no generation ends between. If a segment
//! cannot be synced, its session ends and the redo files stay, for whoever opens the log next.

use super::Files;
use super::live_segment::now;
use crate::disk_sync::sync_file;
use crate::failure::WriteError;
use crate::live::Live;
use crate::redo::{RedoDirectory, RedoEntry, RedoError, RedoWriter, boot_id};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::btree_map::{BTreeMap, Entry};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long segments are synced behind their entries at most, while the disk keeps up.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes of a generation after which its segments are synced at once. A redo file keeps so many.
const MOST: u64 = 64 * 1024 * 1024;

/// The redo files of one log.
#[derive(Debug)]
pub(crate) struct RedoLog {
    state_directory: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

/// While it is held, no generation ends.
pub(super) type RedoGuard<'a> = MutexGuard<'a, State>;

#[derive(Debug, Default)]
pub(super) struct State {
    /// None: nothing was appended yet, or the files failed.
    files: Option<(RedoDirectory, RedoWriter<File>)>,
    /// Segments with entries of this generation, with their sessions.
    unsynced: BTreeMap<(i64, u32), (Arc<Live>, File)>,
    due: Option<Instant>,
    /// Files that could not be synced, and go with the next segments.
    replaced: Vec<RedoDirectory>,
    /// Files that are needed at the next start. Their locks are kept, so that it is one.
    needed: Vec<RedoDirectory>,
    has_failed: bool,
    is_stopped: bool,
}

/// What is synced at once.
#[derive(Debug)]
struct Generation {
    number: Option<u64>,
    unsynced: BTreeMap<(i64, u32), (Arc<Live>, File)>,
    replaced: Vec<RedoDirectory>,
}

impl RedoLog {
    /// Of a log in a state directory.
    pub(super) fn new(state_directory: &Path) -> Self {
        Self { state_directory: state_directory.to_owned(), state: Mutex::default(), changed: Condvar::new() }
    }

    /// Begins a group.
    pub(super) fn begin(&self) -> RedoGuard<'_> {
        let mut state = self.state.lock();
        // Behind a generation that is being synced at most so much waits for the next one.
        while state.bytes() > MOST && !state.is_stopped {
            self.changed.notify_all();
            self.changed.wait(&mut state);
        }
        state
    }

    /// Appends to the redo files; what was appended survives the loss of power when this returns.
    ///
    /// # Errors
    /// Then none of it counts. It may be replayed all the same.
    pub(super) fn append(&self, state: &mut State, entries: &[RedoEntry<'_>]) -> io::Result<()> {
        if state.files.is_none() {
            let (directory, files) = RedoDirectory::begin(&self.state_directory)?;
            state.files = Some((directory, RedoWriter::new(files, boot_id())));
        }
        let Some((_, writer)) = &mut state.files else { return Ok(()) };
        match writer.append(entries) {
            Ok(()) => {
                state.has_failed = false;
                if state.due.is_none() || writer.bytes() > MOST {
                    state.due = Some(if writer.bytes() > MOST { now() } else { now() + EVERY });
                    self.changed.notify_all();
                }
                Ok(())
            }
            Err(RedoError::Write(error)) => {
                state.has_failed |= !crate::disk::means_full(&error);
                Err(error)
            }
            Err(RedoError::Sync(error)) => {
                // Nobody knows what a file has that could not be synced.
                state.has_failed = true;
                state.replaced.extend(state.files.take().map(|(directory, _)| directory));
                state.due.get_or_insert(now());
                self.changed.notify_all();
                Err(error)
            }
        }
    }

    /// Whether the disk takes anything, if it has failed to.
    ///
    /// # Errors
    /// When it does not.
    pub(super) fn check(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.has_failed { self.append(&mut state, &[]) } else { Ok(()) }
    }

    /// Syncs segments when they are due, until that is [stopped](Self::stop); then what is left, and removes the redo files.
    fn sync_segments(&self) {
        loop {
            let is_over = self.wait();
            self.sync();
            if is_over {
                break;
            }
        }
        let mut state = self.state.lock();
        if let Some((directory, _)) = state.files.take()
            && let Err(error) = directory.remove()
        {
            tracing::warn!(%error, "redo files are left behind, to no effect");
        }
    }

    /// Has the thread end.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Waits until segments are due. True: the thread is to end.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        loop {
            match state.due {
                _ if state.is_stopped => return true,
                Some(due) if due <= now() => return false,
                Some(due) => drop(self.changed.wait_until(&mut state, due)),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Syncs the segments of all entries, and has the redo files begin anew.
    pub(crate) fn sync(&self) {
        let generation = self.state.lock().end_generation();
        self.changed.notify_all();
        let mut all_synced = true;
        for (live, file) in generation.unsynced.values() {
            if let Err(error) = sync_file(file) {
                all_synced = false;
                // Not one that the disk is doubted for: it is tried whether it takes anything.
                let error = WriteError::from_files(&error);
                tracing::error!(session = live.id, %error, "what a session has written is not on the disk");
                if live.failure().is_none() {
                    live.fail(error);
                }
            }
        }
        let mut state = self.state.lock();
        match all_synced {
            true => state.synced(generation),
            false => state.not_synced(generation),
        }
    }
}

impl State {
    /// A segment has entries that are to be synced in it.
    pub(super) fn put(&mut self, live: &Arc<Live>, number: u32, file: &File) -> io::Result<()> {
        if let Entry::Vacant(entry) = self.unsynced.entry((live.row, number)) {
            match file.try_clone() {
                Ok(file) => drop(entry.insert((Arc::clone(live), file))),
                // This process has as many files as it may.
                Err(_) => sync_file(file)?,
            }
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.files.as_ref().map_or(0, |(_, writer)| writer.bytes())
    }

    fn end_generation(&mut self) -> Generation {
        self.due = None;
        Generation {
            number: self.files.as_mut().and_then(|(_, writer)| writer.turn()),
            unsynced: std::mem::take(&mut self.unsynced),
            replaced: std::mem::take(&mut self.replaced),
        }
    }

    fn synced(&mut self, generation: Generation) {
        if let (Some(number), Some((_, writer))) = (generation.number, &mut self.files) {
            writer.free(number, MOST);
        }
        for directory in generation.replaced {
            if let Err(error) = directory.remove() {
                tracing::warn!(%error, "redo files are left behind, to no effect");
            }
        }
    }

    fn not_synced(&mut self, generation: Generation) {
        self.has_failed = true;
        self.needed.extend(generation.replaced);
        self.needed.append(&mut self.replaced);
        if let Some((directory, mut writer)) = self.files.take() {
            if let Err(error) = writer.condemn() {
                tracing::error!(%error, "redo files are replayed only when the machine has booted");
            }
            self.needed.push(directory);
        }
    }
}

impl Files {
    /// Does what the redo files need beside the writer, until that ends.
    pub(crate) fn sync_segments(&self) {
        if let Some(redo) = &self.redo {
            redo.sync_segments();
        }
    }
}
