//! Puts what redo files have into the segments that may have lost it with the power of the machine.
//!
//! Done by whoever opens a log, before any session is read or claimed. Each place of a segment has had one content ever: a session
//! whose append failed is continued in another segment. So entries may be replayed again, in any order, also those whose segments were
//! synced. Not replayed: what another claim left out, and what was sealed, removed or renamed, which synced it. Nothing of it is
//! needed while the machine runs: what a process wrote that died is there; then the segments are synced and no more.

use super::boot::has_booted_since;
use super::directory::{RedoDirectory, lock_all};
use super::{BOOT_BYTES, RedoEntries, RedoEntry, RedoHeader, RedoHeaderError};
use crate::disk_sync::sync_file;
use crate::named::Named;
use crate::segment::{NONCE_BYTES, SegmentHeader, StoredBatch};
use crate::session_files::layout::{self, Part};
use crate::session_files::{SessionDir, SessionFileError};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The entries of each segment, with whether they are to be written.
type BySegment<'a> = BTreeMap<(&'a str, u32), Vec<(RedoEntry<'a>, bool)>>;

/// Replays the redo files of the logs of a state directory that have ended, and removes them. Waits while another process does that.
/// `boot` is [this boot](super::boot_id). On a full disk it calls `make_room` for so many bytes, which says whether it made any.
///
/// # Errors
/// When a segment or a redo file cannot be read or written: what was committed may be missing until that works.
pub fn replay_all(
    state: &Path,
    boot: &[u8; BOOT_BYTES],
    mut make_room: impl FnMut(u64) -> bool,
) -> io::Result<()> {
    let all = layout::redo(state);
    let alone = match lock_all(&all) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        alone => alone?,
    };
    for directory in RedoDirectory::find_left(&all, &alone)? {
        let files = directory.read()?;
        let mut segments = BySegment::new();
        for bytes in &files {
            let header = match RedoHeader::decode(bytes) {
                Ok(header) => header,
                Err(RedoHeaderError::Missing) => continue,
                Err(newer) => return Err(io::Error::other(newer)),
            };
            let is_written = has_booted_since(&header.boot, boot);
            for entry in RedoEntries::new(bytes, &header) {
                segments.entry((entry.session, entry.segment)).or_default().push((entry, is_written));
            }
        }
        let count = segments.len();
        for ((session, number), entries) in segments {
            let sessions = layout::sessions(state);
            let replayed = replay(&sessions, (session, number), &entries, &mut make_room);
            replayed.named(&layout::session(&sessions, session))?;
        }
        tracing::info!(redo = ?directory.path(), segments = count, "what was not synced of sessions is");
        // What cannot be removed is replayed once more.
        if let Err(error) = directory.remove() {
            tracing::warn!(%error, "redo files of a log that has ended could not be removed");
        }
    }
    Ok(())
}

/// Replays the entries of one segment and syncs it.
fn replay(
    sessions: &Path,
    (session, number): (&str, u32),
    entries: &[(RedoEntry<'_>, bool)],
    make_room: &mut impl FnMut(u64) -> bool,
) -> io::Result<()> {
    let Some(segment) = Target::find(sessions, session, number)? else { return Ok(()) };
    for (entry, _) in entries.iter().filter(|(entry, is_written)| *is_written && segment.takes(entry)) {
        while let Err(error) = segment.file.write_all_at(entry.batches, entry.offset) {
            if !crate::disk::means_full(&error) || !make_room(entry.batches.len() as u64) {
                return Err(error);
            }
        }
    }
    sync_file(&segment.file)
}

/// A segment that entries are replayed into.
struct Target {
    file: File,
    nonce: [u8; NONCE_BYTES],
    /// Where the segment behind it says that it ends.
    cut: Option<u64>,
}

impl Target {
    /// None: what was in it is synced elsewhere, or gone.
    fn find(sessions: &Path, session: &str, number: u32) -> io::Result<Option<Self>> {
        let Some(directory) = SessionDir::open(&layout::session(sessions, session))? else { return Ok(None) };
        let parts = directory.parts()?;
        let Some(at) = parts.iter().position(|part| *part == Part::Log(number)) else { return Ok(None) };
        let header = |part: Part| match directory.open_segment(part) {
            Ok((_, header)) => Ok(Some(header)),
            // Another process has sealed it meanwhile.
            Err(SessionFileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(SessionFileError::Io(error)) => Err(error),
            // It is no segment that any batch could be of.
            Err(error) => {
                tracing::warn!(session, %error, "nothing is replayed into a segment that cannot be read");
                Ok(None)
            }
        };
        let Some(SegmentHeader { nonce, .. }) = header(parts[at])? else { return Ok(None) };
        let next = parts.get(at + 1).filter(|next| Some(next.range().0) == number.checked_add(1));
        let next = next.map(|next| header(*next)).transpose()?.flatten();
        match directory.file(&parts[at].name(), true) {
            Ok(file) => Ok(Some(Self { file, nonce, cut: next.map(|next| next.cut) })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether an entry is of this segment, whatever had its number before, and counts in it.
    fn takes(&self, entry: &RedoEntry<'_>) -> bool {
        if self.cut.is_some_and(|cut| entry.end() > cut) {
            return false;
        }
        let (mut rest, mut place) = (entry.batches, entry.offset);
        while !rest.is_empty() {
            let Ok(batch) = StoredBatch::decode(rest, &self.nonce, place) else { return false };
            rest = &rest[batch.length as usize..];
            place += u64::from(batch.length);
        }
        true
    }
}

#[cfg(test)]
mod tests;
