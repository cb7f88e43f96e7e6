//! The sessions that have an appender in this process, and how far each is committed.
//!
//! Owned by the log; whoever writes a session moves its progress. What wakes a reader is that a
//! number has moved, never a payload, so a slow reader is behind and costs nothing. No `watch`, which is three times as
//! big: it has lists for many more waiters than a session has.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use tokio::sync::Notify;

use crate::cache::FormKind;
use crate::failure::WriteError;
use crate::files::{Group, IndexRow, LiveSegment, Queued};
use crate::outbox::NamedNote;

/// The host that a session belongs to, if there is one.
pub(crate) type Owner = Option<Arc<str>>;

#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) committed: u64,
    /// Set once; nothing more is committed by this appender then.
    pub(crate) failure: Option<WriteError>,
    /// Set once, after the appender's last commit.
    pub(crate) closed: bool,
    /// How much was handed over to those who write backlogs, and how much of that is done.
    given: u64,
    done: u64,
    /// The appender's own thread writes now.
    is_writing: bool,
    /// The appender is gone; what it has handed over is still to be written.
    is_left: bool,
}

/// How far a session is committed, for its readers: who keeps this keeps nothing of the session's appender.
#[derive(Debug)]
pub(crate) struct LiveProgress {
    progress: Mutex<Progress>,
    /// Told of each change of the progress.
    moved: Notify,
    /// Told of a failure, for those that need not know of each commit.
    failed: Notify,
    /// How many readers share the forms of its blocks.
    /// Those that share, by the kind of their forms.
    sharers: Mutex<Vec<(FormKind, Weak<()>)>>,
}

/// A session with an appender in this process.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: String,
    pub(crate) row: i64,
    /// The host that this appender writes for.
    owner: Owner,
    progress: Arc<LiveProgress>,
    /// What it is appended to.
    pub(crate) segment: Option<LiveSegment>,
    /// What waits to be appended to it.
    backlog: Mutex<VecDeque<Queued>>,
    /// The index does not say what it is now.
    is_behind: AtomicBool,
    /// The disk may lack something of what was appended.
    is_unsynced: AtomicBool,
    notes: Mutex<Vec<NamedNote>>,
}

impl Live {
    /// One that is appended to a segment.
    pub(crate) fn of_files(
        id: String,
        key: i64,
        owner: Option<String>,
        committed: u64,
        segment: LiveSegment,
    ) -> Self {
        Self { segment: Some(segment), ..Self::new(id, key, owner, committed) }
    }

    pub(crate) fn new(id: String, row: i64, owner: Option<String>, committed: u64) -> Self {
        Self {
            id,
            row,
            owner: owner.map(Arc::from),
            progress: Arc::new(LiveProgress::new(committed)),
            segment: None,
            backlog: Mutex::default(),
            is_behind: AtomicBool::new(false),
            is_unsynced: AtomicBool::new(false),
            notes: Mutex::default(),
        }
    }

    /// What its segment says of it.
    pub(crate) fn row(&self) -> Option<IndexRow> {
        self.segment.as_ref().map(LiveSegment::row)
    }

    /// Says whether the index is behind from now on; whether it was.
    pub(crate) fn set_behind(&self, is_behind: bool) -> bool {
        self.is_behind.swap(is_behind, Ordering::AcqRel)
    }

    /// Says whether the disk may lack something of it from now on. Returns whether that was so.
    pub(crate) fn set_unsynced(&self, is_unsynced: bool) -> bool {
        self.is_unsynced.swap(is_unsynced, Ordering::AcqRel)
    }

    /// Whether the disk may lack something of it.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.is_unsynced.load(Ordering::Acquire)
    }

    /// Subscribers are to be told of these events.
    pub(crate) fn note(&self, notes: Vec<NamedNote>) {
        if !notes.is_empty() {
            self.notes.lock().extend(notes);
        }
    }

    /// What was noted since this was asked last.
    pub(crate) fn take_notes(&self) -> Vec<NamedNote> {
        std::mem::take(&mut *self.notes.lock())
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner.clone()
    }

    /// How far it is committed.
    pub(crate) fn progress(&self) -> &Arc<LiveProgress> {
        &self.progress
    }

    pub(crate) fn committed(&self) -> u64 {
        self.progress.committed()
    }

    pub(crate) fn failure(&self) -> Option<WriteError> {
        self.progress.failure()
    }

    /// The last committed event, and whether there will be no more.
    pub(crate) fn reach(&self) -> (u64, bool) {
        self.progress.reach()
    }

    pub(crate) fn publish(&self, committed: u64) {
        self.progress.change(|progress| {
            progress.committed = committed;
            progress.is_writing = false;
        });
    }

    pub(crate) fn fail(&self, error: WriteError) {
        self.progress.change(|progress| {
            progress.failure = Some(error);
            progress.is_writing = false;
        });
        self.progress.failed.notify_waiters();
    }

    /// Whether the appender may write: nothing waits in front of that. Its thread writes from then on.
    pub(crate) fn begin_write(&self) -> Result<bool, WriteError> {
        let mut progress = self.progress.progress();
        progress.failure.clone().map_or(Ok(()), Err)?;
        progress.is_writing = !progress.has_backlog();
        Ok(progress.is_writing)
    }

    /// What the appender wrote has no event of which would be told.
    pub(crate) fn end_write(&self) {
        self.progress.change(|progress| progress.is_writing = false);
    }

    /// Whether something that was handed over is not done.
    pub(crate) fn has_backlog(&self) -> bool {
        self.progress.progress().has_backlog()
    }

    /// Hands something over to those who write backlogs. True: they must be told that this session has one.
    pub(crate) fn hand_over(&self, queued: Queued) -> bool {
        let mut backlog = self.backlog.lock();
        let mut progress = self.progress.progress();
        progress.is_left |= matches!(queued, Queued::End);
        backlog.push_back(queued);
        progress.given += 1;
        progress.given - progress.done == 1
    }

    /// What is done next of what was handed over.
    pub(crate) fn next_group(&self) -> Option<Group> {
        Group::take(&mut self.backlog.lock())
    }

    /// So much more of it is done. True: that was all.
    pub(crate) fn settle(&self, count: u64) -> bool {
        let mut is_done = false;
        self.progress.change(|progress| {
            progress.done += count;
            is_done = !progress.has_backlog();
        });
        is_done
    }

    /// Waits for the end of an appender that is gone already.
    pub(crate) async fn left(&self) {
        self.progress.wait_until(|progress| (!progress.is_left || progress.closed).then_some(())).await;
    }

    pub(crate) fn close(&self) {
        self.progress.change(|progress| progress.closed = true);
    }
}

impl LiveProgress {
    fn new(committed: u64) -> Self {
        let progress = Progress {
            committed,
            failure: None,
            closed: false,
            given: 0,
            done: 0,
            is_writing: false,
            is_left: false,
        };
        Self {
            progress: Mutex::new(progress),
            moved: Notify::new(),
            failed: Notify::new(),
            sharers: Mutex::default(),
        }
    }

    pub(crate) fn committed(&self) -> u64 {
        self.progress().committed
    }

    pub(crate) fn failure(&self) -> Option<WriteError> {
        self.progress().failure.clone()
    }

    /// The last committed event, and whether there will be no more.
    pub(crate) fn reach(&self) -> (u64, bool) {
        let progress = self.progress();
        (progress.committed, progress.closed)
    }

    /// Whether no thread stands in a write that the appender's caller waits for.
    pub(crate) fn is_idle(&self) -> bool {
        !self.progress().is_writing
    }

    /// Waits for that.
    pub(crate) async fn idle(&self) {
        self.wait_until(|progress| (!progress.is_writing || progress.closed).then_some(())).await;
    }

    /// Waits until all that was appended before is committed, or cannot be.
    pub(crate) async fn flushed(&self) {
        let given = self.progress().given;
        self.wait_until(|progress| {
            (progress.done >= given && !progress.is_writing || progress.closed).then_some(())
        })
        .await;
    }

    /// Waits until `look` finds what it looks for.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub(crate) async fn wait_until<T>(&self, look: impl Fn(&Progress) -> Option<T>) -> T {
        wait_for(&self.moved, || look(&self.progress())).await
    }

    /// Waits for a failure, and for nothing else.
    async fn failed(&self) -> WriteError {
        wait_for(&self.failed, || self.failure()).await
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress());
        self.moved.notify_waiters();
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }
}

impl Progress {
    fn has_backlog(&self) -> bool {
        self.given > self.done
    }
}

/// A reader that shares the forms of one kind of a live session's blocks with the others that do.
#[derive(Debug)]
pub(crate) struct Sharer {
    pub(crate) kind: FormKind,
    all: Arc<()>,
}

impl Sharer {
    pub(crate) fn new(progress: &LiveProgress, kind: FormKind) -> Self {
        let mut sharers = progress.sharers.lock();
        let known = sharers.iter().find(|(known, _)| *known == kind).and_then(|(_, all)| all.upgrade());
        let all = known.unwrap_or_else(|| {
            sharers.retain(|(_, all)| all.strong_count() > 0);
            let all = Arc::new(());
            sharers.push((kind, Arc::downgrade(&all)));
            all
        });
        Self { kind, all }
    }

    /// Whether there is no other.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.all) < 2
    }
}

/// Waits until `look`, which is asked again after each word of `told`, finds something.
async fn wait_for<T>(told: &Notify, look: impl Fn() -> Option<T>) -> T {
    loop {
        let mut told = std::pin::pin!(told.notified());
        // From here on none is missed.
        told.as_mut().enable();
        if let Some(found) = look() {
            return found;
        }
        told.await;
    }
}

/// All live sessions of this process, by id.
#[derive(Debug, Default)]
pub(crate) struct LiveSessions(Mutex<HashMap<String, Arc<Live>>>);

impl LiveSessions {
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Live>> {
        self.0.lock().get(id).cloned()
    }

    /// The sessions of a host, each with its last committed event.
    pub(crate) fn of_host(&self, host: &str) -> Vec<(String, u64)> {
        let lives = self.0.lock();
        let of_host = lives.values().filter(|live| live.owner().as_deref() == Some(host));
        of_host.map(|live| (live.id.clone(), live.committed())).collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        self.0.lock().values().cloned().collect()
    }

    pub(crate) fn insert(&self, live: Arc<Live>) {
        self.0.lock().insert(live.id.clone(), live);
    }

    pub(crate) fn end(&self, live: &Live) {
        self.0.lock().remove(&live.id);
        live.close();
    }

    /// Ends them all: nothing is written any more.
    pub(crate) fn end_all(&self) {
        for (_, live) in self.0.lock().drain() {
            if live.failure().is_none() {
                live.fail(WriteError::Closed);
            }
            live.close();
        }
    }
}

/// How far a session is committed, for those who act after the commit.
#[derive(Debug, Clone)]
pub struct Committed(Arc<LiveProgress>);

impl Committed {
    pub(crate) fn new(live: &Live) -> Self {
        Self(Arc::clone(live.progress()))
    }

    /// The last committed sequence number, 0 before the first.
    pub fn seq(&self) -> u64 {
        self.0.committed()
    }

    /// Why nothing more is committed, if so.
    pub fn failure(&self) -> Option<WriteError> {
        self.0.failure()
    }

    /// Waits until nothing more is committed, and says why. A commit wakes nothing here.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn failed(&self) -> WriteError {
        self.0.failed().await
    }

    /// Waits until `seq` is committed. Fails with the reason when that will not happen.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn wait_for(&self, seq: u64) -> Result<(), WriteError> {
        let look = |progress: &Progress| match progress {
            Progress { committed, .. } if *committed >= seq => Some(Ok(())),
            Progress { failure: Some(error), .. } => Some(Err(error.clone())),
            Progress { closed, .. } => closed.then_some(Err(WriteError::Closed)),
        };
        self.0.wait_until(look).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // architecture 5: a failure is seen whenever it came, and no commit is taken for one
    #[tokio::test]
    async fn a_failure_is_told_apart_from_commits() {
        let live = Arc::new(Live::new("a".to_owned(), 1, None, 0));
        let committed = Committed::new(&live);
        let mut waiting = Box::pin(committed.failed());
        assert!(poll_once(&mut waiting).await.is_none());
        live.publish(1);
        assert!(poll_once(&mut waiting).await.is_none());
        live.fail(WriteError::Closed);
        assert!(matches!(waiting.await, WriteError::Closed));
        assert!(matches!(committed.failed().await, WriteError::Closed), "also behind it");
    }

    /// What a future gives if it is polled now.
    async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }
}
