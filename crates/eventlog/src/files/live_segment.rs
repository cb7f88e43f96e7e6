//! The segment that a live session appends to.
//!
//! Owned by the session's entry among the live ones; its appender writes it, or who writes what that has handed over
//! (`backlog.rs`). Invariants: what was appended is committed and can be read when the append returns; whoever asks what the
//! index says of it waits for no write.

use super::running_writes::RunningWrite;
use super::{Files, IndexRow, signed};
use crate::batch::Batch;
use crate::block::Block;
use crate::failure::WriteError;
use crate::live::{Live, LiveSessions};
use crate::log::Shared;
use crate::metrics;
use crate::segment::SegmentFlags;
use crate::session_files::{
    Claim, Claimed, Facts, FramedAppend, NextBatch, SEGMENT_BYTES, SMALL_SEGMENT, SegmentWriter, SessionDir,
    SessionFileError, Standing,
};
use parking_lot::{Mutex, MutexGuard};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// A segment with its writer.
#[derive(Debug)]
pub(crate) struct LiveSegment {
    directory: SessionDir,
    facts: Facts,
    writing: Mutex<Writing>,
    /// Taken for a moment, also while `writing` is held.
    committed: Mutex<CommittedRow>,
}

/// What is written to.
#[derive(Debug)]
pub(super) struct Writing {
    writer: SegmentWriter<File>,
    number: u32,
    /// Bytes of its claim, if that has no events.
    claim_bytes: u64,
}

/// What the index says of a segment, but for its facts.
#[derive(Debug)]
struct CommittedRow {
    standing: Standing,
    info: Vec<u8>,
    number: u32,
    /// Its own bytes, and those of the files before it.
    bytes: u64,
    before: u64,
    /// Segments before it may be worth a seal.
    has_unsealed: bool,
    /// The first segment of which the disk may lack something.
    unsynced_from: u32,
}

impl LiveSegment {
    /// One that was claimed; the files before it have so many bytes.
    pub(crate) fn new(
        directory: SessionDir,
        claimed: Claimed,
        (facts, info): (Facts, Vec<u8>),
        before: u64,
    ) -> Self {
        let Claimed { writer, header, .. } = claimed;
        let (standing, number, bytes) = (writer.standing().clone(), header.number, writer.end().0);
        let claim_bytes = if standing.last_seq < header.first_seq { bytes } else { 0 };
        let (has_unsealed, unsynced_from) = (before > 0, number.saturating_sub(1));
        let committed = CommittedRow { standing, info, number, bytes, before, has_unsealed, unsynced_from };
        let writing = Writing { writer, number, claim_bytes };
        Self { directory, facts, writing: Mutex::new(writing), committed: Mutex::new(committed) }
    }

    /// The host that has it.
    pub(crate) fn host(&self) -> &str {
        &self.facts.host
    }

    /// What the index says of it.
    pub(crate) fn row(&self) -> IndexRow {
        let committed = self.committed.lock();
        IndexRow {
            session: self.facts.row(&committed.standing, committed.info.clone()),
            segment: committed.number,
            bytes: committed.before + committed.bytes,
            unsealed: committed.has_unsealed || committed.is_worth_sealing(),
            claimed_by: self.facts.host.clone(),
        }
    }

    /// Bytes of it and of the files before it.
    pub(super) fn bytes(&self) -> u64 {
        let committed = self.committed.lock();
        committed.before + committed.bytes
    }

    /// Bytes of it alone.
    pub(super) fn own_bytes(&self) -> u64 {
        self.committed.lock().bytes
    }

    /// Looks at the files before it again, after an attempt to seal them.
    pub(super) fn count_closed(&self) -> io::Result<()> {
        let number = self.committed.lock().number;
        let before = self.directory.bytes_before(number)?;
        let has_unsealed = self.directory.last().and_then(|last| self.directory.has_unsealed(&last));
        let mut committed = self.committed.lock();
        // It may have gone on meanwhile; then the next attempt counts.
        if committed.number == number {
            (committed.before, committed.has_unsealed) = (before, has_unsealed.unwrap_or(false));
        }
        Ok(())
    }

    /// Whether the disk may lack something of a segment before it.
    pub(super) fn follows_unsynced(&self) -> bool {
        let committed = self.committed.lock();
        committed.unsynced_from > 0 && committed.unsynced_from < committed.number
    }

    /// The files of which the disk may lack something, in order. The caller syncs them.
    pub(super) fn take_unsynced(&self) -> io::Result<Vec<File>> {
        // Of the same opening: an error of the disk is told once to each.
        let (current, number) = {
            let writing = self.writing.lock();
            (writing.writer.file().try_clone()?, writing.number)
        };
        let from = self.committed.lock().unsynced_from;
        let mut files = Vec::new();
        for number in from..number {
            // One that was sealed meanwhile is on the disk.
            files.extend(self.directory.log(number)?);
        }
        files.push(current);
        self.committed.lock().unsynced_from = number;
        Ok(files)
    }

    /// Gives it up; its directory stays open.
    pub(super) fn into_directory(self) -> SessionDir {
        self.directory
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock()
    }

    /// Appends a batch, which is committed when this returns.
    fn append(&self, writing: &mut Writing, next: &NextBatch) -> Result<(), AppendError> {
        if writing.writer.end().0 >= SEGMENT_BYTES {
            self.go_on(writing, Batch::default())?;
        }
        match writing.writer.append_next(next, None) {
            // At the limit of one file's size, which the next one begins anew.
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge && writing.has_more_than_a_claim() => {
                self.go_on(writing, Batch::default())?;
                writing.writer.append_next(next, None)?;
            }
            appended => appended?,
        }
        self.confirm(writing, next.info())
    }

    /// Frames a batch as what comes next. Nothing is written, but for the next segment if this one is full.
    pub(super) fn frame(&self, writing: &mut Writing, batch: Batch) -> Result<FramedAppend, AppendError> {
        if writing.writer.end().0 >= SEGMENT_BYTES {
            self.go_on(writing, Batch::default())?;
        }
        Ok(writing.writer.frame(batch, None)?)
    }

    /// Writes what was framed last; its events, which are committed.
    pub(super) fn write(
        &self,
        writing: &mut Writing,
        framed: FramedAppend,
    ) -> Result<Vec<Block>, AppendError> {
        let info = framed.info().cloned();
        let blocks = writing.writer.write(framed)?;
        self.confirm(writing, info.as_ref())?;
        Ok(blocks)
    }

    /// Has the index say what was written, if that counts.
    fn confirm(&self, writing: &Writing, info: Option<&Vec<u8>>) -> Result<(), AppendError> {
        // Each time, for two microseconds: another host may have taken this one for dead.
        let (file, end) = (writing.writer.file(), writing.writer.end().0);
        if !self.directory.counts(writing.number, file, end)? {
            return Err(AppendError::Replaced);
        }
        let mut committed = self.committed.lock();
        committed.standing.clone_from(writing.writer.standing());
        committed.bytes = end;
        if let Some(info) = info {
            committed.info.clone_from(info);
        }
        Ok(())
    }

    /// Claims the next segment with a batch; its events, which are committed.
    pub(super) fn go_on(&self, writing: &mut Writing, batch: Batch) -> Result<Vec<Block>, AppendError> {
        let last = self.directory.last()?;
        if last.header.number != writing.number || last.standing.released {
            return Err(AppendError::Replaced);
        }
        let info = batch.index.as_ref().and_then(|index| index.info.clone());
        let goes_on = batch.index.as_ref().is_none_or(|index| index.owner.is_none());
        let claim = Claim { flags: SegmentFlags::default(), facts: &self.facts, goes_on, batch };
        let claimed = self.directory.claim(&last, claim)?.ok_or(AppendError::Replaced)?;
        (writing.writer, writing.number) = (claimed.writer, claimed.header.number);
        let bytes = writing.writer.end().0;
        writing.claim_bytes = if claimed.blocks.is_empty() { bytes } else { 0 };
        let mut committed = self.committed.lock();
        committed.standing.clone_from(writing.writer.standing());
        committed.before += last.end.0;
        (committed.number, committed.bytes) = (writing.number, bytes);
        committed.has_unsealed = true;
        if let Some(info) = info {
            committed.info = info;
        }
        Ok(claimed.blocks)
    }
}

impl CommittedRow {
    /// Whether it is closed and may be sealed with what is before it.
    fn is_worth_sealing(&self) -> bool {
        self.standing.released && (self.before > 0 || self.bytes > SMALL_SEGMENT)
    }
}

impl Writing {
    /// The last event.
    pub(super) fn last_seq(&self) -> u64 {
        self.writer.standing().last_seq
    }

    /// The number of the segment, and its file.
    pub(super) fn file(&self) -> (u32, &File) {
        (self.number, self.writer.file())
    }

    /// Whether the next segment would have more room than this one.
    fn has_more_than_a_claim(&self) -> bool {
        self.writer.end().0 > self.claim_bytes
    }
}

/// Why a batch was not appended.
#[derive(Debug)]
pub(super) enum AppendError {
    /// Another host has the session, or it is gone.
    Replaced,
    Files(SessionFileError),
}

impl From<io::Error> for AppendError {
    fn from(error: io::Error) -> Self {
        Self::Files(error.into())
    }
}

impl From<SessionFileError> for AppendError {
    fn from(error: SessionFileError) -> Self {
        Self::Files(error)
    }
}

impl Shared {
    /// Appends a batch to a live session; it is committed when this returns. Last words may use the reserve. Ends the write, which
    /// was begun for this.
    ///
    /// # Errors
    /// Nothing more is appended then, but for last words.
    pub(crate) fn append_to_segment(
        &self,
        files: &Files,
        live: &Arc<Live>,
        (batch, is_last): (Batch, bool),
        write: RunningWrite<'_>,
    ) -> Result<u64, WriteError> {
        let Some(segment) = &live.segment else { return Err(WriteError::Closed) };
        let (count, bytes) = (batch.count, batch.cost());
        // The index learns soon who has a session no more.
        let is_end = batch.index.as_ref().is_some_and(|index| index.owner.is_some() || index.ended.is_some());
        let (appended, notes, grown, is_urgent) = {
            let mut writing = segment.lock();
            let (bytes_before, after) = (segment.bytes(), writing.writer.standing().last_seq);
            let noted = files.subscribers.read().named(after + 1, &batch);
            let next = NextBatch::new(batch, after);
            let mut append = || files.append(live, (segment, &mut *writing), &next);
            let appended = match is_last {
                true => files.with_reserve(bytes, append),
                false => files.check_limit(bytes).and_then(|()| append()),
            };
            let notes = noted.len();
            // Under the lock, so that the cache has the blocks in their order.
            let appended = appended.map(|()| {
                match count {
                    0 => live.end_write(),
                    _ => {
                        self.cache.put(live.row, next.into_blocks());
                        live.publish(after + count);
                    }
                }
                live.note(noted);
                after + count
            });
            (appended, notes, signed(segment.bytes()) - signed(bytes_before), segment.follows_unsynced())
        };
        let ended = now();
        let took = write.end(ended);
        match &appended {
            Ok(_) => {
                metrics::commit_took(took);
                metrics::appended(count, bytes as u64);
                files.count(grown);
                if files.rows.put_live(live, (notes, is_end), ended) {
                    self.wake_writer();
                }
                files.unsynced.put_live(live, is_urgent);
            }
            Err(error) => {
                metrics::commit_failed();
                tracing::warn!(session = live.id, %error, "nothing more is written for this session");
                live.fail(error.clone());
            }
        }
        appended
    }

    /// The index does not say what a live session is now, by a change with so many notes, which may be its last.
    pub(crate) fn put_row(&self, files: &Files, live: &Arc<Live>, change: (usize, bool)) {
        if files.rows.put_live(live, change, now()) {
            self.wake_writer();
        }
    }

    /// Has the writer look at what is due. One that is closing looks by itself.
    pub(crate) fn wake_writer(&self) {
        let _closed = self.queue.job(Box::new(|_| {}));
    }
}

impl Files {
    fn append(
        &self,
        live: &Live,
        (segment, writing): (&LiveSegment, &mut Writing),
        next: &NextBatch,
    ) -> Result<(), WriteError> {
        segment.append(writing, next).map_err(|error| self.append_failed(live, segment, error))
    }

    /// Why a batch was not appended.
    pub(super) fn append_failed(&self, live: &Live, segment: &LiveSegment, error: AppendError) -> WriteError {
        match error {
            AppendError::Replaced => self.refusal(live, segment.host()),
            AppendError::Files(error) => self.unreadable(error),
        }
    }

    /// A live session is live no more, and all that its appender has left is written.
    pub(crate) fn end_live(&self, sessions: &LiveSessions, live: &Live) {
        sessions.end(live);
        self.unsynced.ended(live);
    }

    /// Why a session does not take what its appender writes.
    fn refusal(&self, live: &Live, host: &str) -> WriteError {
        let id = live.id.clone();
        match self.find(&id).ok().flatten().and_then(|found| found.owner().map(str::to_owned)) {
            Some(owner) if owner != host => WriteError::TakenOver { id, owner },
            _ => WriteError::Conflict { id },
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a shell: it measures, and says when rows are due")]
pub(super) fn now() -> Instant {
    Instant::now()
}
