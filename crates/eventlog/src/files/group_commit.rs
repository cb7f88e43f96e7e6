//! Commits of many sessions at once that survive the loss of power: one sync of a redo file for all, then each segment is written.
//!
//! On the writer thread, from its queue. Invariants: nothing is in a segment that is not on the disk in a
//! redo file; no place of a segment ever has two contents: what a session says behind a batch that failed is in its next segment, which
//! needs no redo file. Of a group, those fail that cannot be written, and no others.

use super::live_segment::{AppendError, now};
use super::redo_log::{RedoGuard, RedoLog};
use super::{Files, signed};
use crate::batch::Batch;
use crate::block::Block;
use crate::failure::WriteError;
use crate::live::Live;
use crate::metrics;
use crate::outbox::NamedNote;
use crate::queue::{Append, QueuePermit, Reply, answer};
use crate::redo::RedoEntry;
use crate::session_files::FramedAppend;
use crate::writer::Writer;
use std::collections::HashMap;
use std::sync::Arc;

/// All that one group has of one session.
struct SessionGroup {
    live: Arc<Live>,
    batch: Batch,
    replies: Vec<Reply>,
    /// Held until it is committed.
    permits: Vec<QueuePermit>,
}

/// The same, framed.
struct FramedGroup {
    live: Arc<Live>,
    segment: u32,
    framed: FramedAppend,
    bytes: Vec<u8>,
    /// Its events, its cost, and what hooks are to be told of.
    count: u64,
    cost: usize,
    notes: Vec<NamedNote>,
    replies: Vec<Reply>,
    _permits: Vec<QueuePermit>,
}

impl SessionGroup {
    /// Of each session what follows in one batch, in their order; what does not is left for the next turn.
    fn take(group: &mut Vec<Append>) -> Vec<Self> {
        let (mut all, mut at, mut left) = (Vec::<Self>::new(), HashMap::new(), Vec::new());
        for append in group.drain(..) {
            if let Some(error) = append.live.failure() {
                answer(append.reply, &Err(error));
                continue;
            }
            let row = append.live.row;
            let known: Option<&usize> = at.get(&row);
            match known.map(|at| all.get_mut(*at)) {
                None => {
                    at.insert(row, all.len());
                    let (replies, permits) = (append.reply.into_iter().collect(), vec![append.permit]);
                    all.push(Self { live: append.live, batch: append.batch, replies, permits });
                }
                Some(Some(one)) if one.batch.is_history == append.batch.is_history => {
                    one.batch.join(append.batch);
                    one.replies.extend(append.reply);
                    one.permits.push(append.permit);
                }
                Some(_) => {
                    // All behind it waits, too.
                    at.insert(row, usize::MAX);
                    left.push(append);
                }
            }
        }
        *group = left;
        all
    }
}

impl FramedGroup {
    fn entry(&self) -> RedoEntry<'_> {
        let offset = self.framed.offset();
        RedoEntry { session: &self.live.id, segment: self.segment, offset, batches: &self.bytes }
    }

    /// Ends the session here: what is behind it is in another segment.
    fn fail(self, files: &Files, error: &WriteError) {
        files.count(-signed(self.bytes.len() as u64));
        fail(&self.live, self.replies, error);
    }
}

fn fail(live: &Live, replies: Vec<Reply>, error: &WriteError) {
    tracing::warn!(session = live.id, %error, "nothing more is written for this session");
    metrics::commit_failed();
    live.fail(error.clone());
    replies.into_iter().for_each(|reply| answer(Some(reply), &Err(error.clone())));
}

impl Writer {
    /// Commits a group to the files of its sessions.
    pub(crate) fn commit_group(&mut self, mut group: Vec<Append>) {
        let files = Arc::clone(&self.beside.files);
        let Some(redo) = &files.redo else { return };
        while !group.is_empty() {
            let mut framed = Vec::new();
            for one in SessionGroup::take(&mut group) {
                framed.extend(self.frame(&files, one, false));
            }
            self.commit_framed(&files, redo, framed);
        }
    }

    /// Commits the last words of a session; the last event.
    pub(crate) fn commit_last(&mut self, live: &Arc<Live>, batch: Batch) -> Result<u64, WriteError> {
        let files = Arc::clone(&self.beside.files);
        let Some(redo) = &files.redo else { return Err(WriteError::Closed) };
        if live.failure().is_none() {
            let one = SessionGroup {
                live: Arc::clone(live),
                batch: batch.clone(),
                replies: Vec::new(),
                permits: Vec::new(),
            };
            let framed = self.frame(&files, one, true);
            self.commit_framed(&files, redo, framed.into_iter().collect());
        }
        match live.failure() {
            None => Ok(live.committed()),
            Some(error @ (WriteError::TakenOver { .. } | WriteError::Conflict { .. })) => Err(error),
            // In the next segment, which is synced by itself.
            Some(_) => self.claim_last(&files, live, &batch),
        }
    }

    fn frame(&self, files: &Files, one: SessionGroup, is_last: bool) -> Option<FramedGroup> {
        let SessionGroup { live, batch, replies, permits } = one;
        let (count, cost) = (batch.count, batch.cost());
        let framed = {
            let segment = live.segment.as_ref()?;
            let mut writing = segment.lock();
            let notes = files.subscribers.read().named(writing.last_seq() + 1, &batch);
            let limit = if is_last { Ok(()) } else { files.check_limit(cost) };
            let framed = limit.and_then(|()| {
                let framed = segment.frame(&mut writing, batch);
                framed.map_err(|error| files.append_failed(&live, segment, error))
            });
            framed.map(|framed| (framed, notes, writing.file().0))
        };
        match framed {
            Ok((framed, notes, segment)) => {
                let bytes = framed.bytes();
                files.count(signed(bytes.len() as u64));
                let _permits = permits;
                Some(FramedGroup { live, segment, framed, bytes, count, cost, notes, replies, _permits })
            }
            Err(error) => {
                fail(&live, replies, &error);
                None
            }
        }
    }

    fn commit_framed(&mut self, files: &Files, redo: &RedoLog, group: Vec<FramedGroup>) {
        if group.is_empty() {
            return;
        }
        let began = now();
        let mut guard = redo.begin();
        let entries: Vec<_> = group.iter().map(FramedGroup::entry).collect();
        let appended = redo.append(&mut guard, &entries);
        match appended {
            Ok(()) => {
                for one in group {
                    self.write_framed(files, &mut guard, one);
                }
                metrics::commit_took(began.elapsed());
            }
            Err(error) if group.len() == 1 || !crate::disk::means_full(&error) => {
                let error = match crate::disk::means_full(&error) {
                    true => files.failed(error),
                    // Whether the disk takes redo files again is tried, and no reason for more doubts.
                    false => WriteError::from_files(&error),
                };
                group.into_iter().for_each(|one| one.fail(files, &error));
            }
            Err(error) => {
                tracing::warn!(%error, sessions = group.len(), "a commit failed; writing each session by itself");
                drop(guard);
                group.into_iter().for_each(|one| self.commit_framed(files, redo, vec![one]));
            }
        }
    }

    /// Writes to a segment what is in the redo file, and publishes it.
    fn write_framed(&self, files: &Files, guard: &mut RedoGuard<'_>, one: FramedGroup) {
        let FramedGroup { live, framed, bytes, count, cost, notes, replies, .. } = one;
        let Some(segment) = &live.segment else { return };
        let mut writing = segment.lock();
        let written = segment.write(&mut writing, framed).and_then(|blocks| {
            let (number, file) = writing.file();
            guard.put(&live, number, file).map_err(AppendError::from)?;
            Ok(blocks)
        });
        match written {
            Ok(blocks) => {
                let noted = notes.len();
                self.publish_blocks(&live, blocks, (count, cost), notes);
                drop(writing);
                files.rows.put_live(&live, (noted, false), now());
                replies.into_iter().for_each(|reply| answer(Some(reply), &Ok(())));
            }
            Err(error) => {
                let error = files.append_failed(&live, segment, error);
                files.count(-signed(bytes.len() as u64));
                drop(writing);
                fail(&live, replies, &error);
            }
        }
    }

    /// Commits last words in the session's next segment, which is synced by itself; the last event.
    fn claim_last(&self, files: &Files, live: &Arc<Live>, batch: &Batch) -> Result<u64, WriteError> {
        let Some(segment) = &live.segment else { return Err(WriteError::Closed) };
        let (count, cost) = (batch.count, batch.cost());
        let mut writing = segment.lock();
        let before = segment.bytes();
        let blocks = files.with_reserve(cost, || {
            let claimed = segment.go_on(&mut writing, batch.clone());
            claimed.map_err(|error| files.append_failed(live, segment, error))
        })?;
        let last = writing.last_seq();
        let notes = files.subscribers.read().named(last + 1 - count, batch);
        let noted = notes.len();
        self.publish_blocks(live, blocks, (count, cost), notes);
        files.count(signed(segment.bytes()) - signed(before));
        drop(writing);
        files.rows.put_live(live, (noted, true), now());
        Ok(last)
    }

    fn publish_blocks(
        &self,
        live: &Live,
        blocks: Vec<Block>,
        (count, cost): (u64, usize),
        notes: Vec<NamedNote>,
    ) {
        if let Some(last) = blocks.last().map(Block::last) {
            self.cache().put(live.row, blocks);
            live.publish(last);
        }
        live.note(notes);
        metrics::appended(count, cost as u64);
    }
}
