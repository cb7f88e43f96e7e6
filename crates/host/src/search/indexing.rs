//! Keeps the index up with the log: a moment behind the end of each turn and each run, and in the background for what was recorded
//! before.
//!
//! One task of the host, which reads the log as a viewer does and hands over small pieces; the writer writes one when it has
//! nothing else to do. What is not indexed when the process ends follows from the number that each session has in the index: the
//! next host goes on there. Sessions that another host has live are left to that.

use super::turns::{Said, Turns};
use crate::chain::chain;
use crate::error::HostError;
use crate::store::{self, SessionStore};
use crate::unsearched::Unsearched;
use acpd_eventlog::{CursorError, Unindexed};
use acpd_record::SessionId;
use acpd_supervisor::TaskScope;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Bytes of what was said that are written together, and one turn more, of at most 28 KiB: some milliseconds of work for the writer.
const TEXT: usize = 64 * 1024;
/// Turns that are written together.
const TURNS: usize = 128;
/// Sessions that are looked up at once.
const PAGE: u32 = 64;
/// The first wait after the index could not be written or read. Each further one is twice as long, up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long a process that ends waits for it.
const LAST: Duration = Duration::from_millis(500);

/// Starts the task, if there is an index.
pub(crate) fn keep_indexing(store: &Arc<SessionStore>, scope: &TaskScope) {
    if !store.log.has_index() {
        return;
    }
    let (news, closing) = (store.unsearched.clone(), scope.token().clone());
    news.serve();
    let lag = store.log.index_lag();
    // It keeps nothing of the host alive.
    let (earlier, failures) = (Earlier::default(), 0);
    let indexing = Indexing { store: Arc::downgrade(store), news, lag, closing, earlier, failures };
    scope.spawn("index", indexing.run());
}

struct Indexing {
    store: Weak<SessionStore>,
    news: Unsearched,
    /// How long news wait.
    lag: Duration,
    closing: CancellationToken,
    earlier: Earlier,
    /// How often in a row the index could not be written or read.
    failures: u32,
}

/// What was recorded before this host, as far as it is not looked through.
#[derive(Debug, Default)]
struct Earlier {
    page: VecDeque<Unindexed>,
    /// The last session of the page before.
    place: Option<(i64, String)>,
    done: bool,
}

/// The reason for which a session is not indexed.
#[derive(Debug)]
enum NotIndexed {
    /// The index cannot be read or written at the moment, or lacks the session: it is tried again.
    Index(HostError),
    /// The session cannot be read, and could not be the next time.
    Session(HostError),
}

/// What a step came to.
enum Step {
    /// There was something to do, which took so long.
    Worked(Duration),
    Nothing,
    Failed,
}

impl Indexing {
    async fn run(mut self) {
        loop {
            let Some(store) = self.store.upgrade() else { return };
            let step = self.step(&store).await;
            drop(store);
            let pause = match step {
                // As long as it worked, so that it never takes more than half a core.
                Step::Worked(took) => Some(took),
                Step::Nothing => None,
                Step::Failed => Some(LONGEST_WAIT.min(FIRST_WAIT * 2_u32.saturating_pow(self.failures))),
            };
            let has_failed = matches!(step, Step::Failed);
            self.failures = if has_failed { self.failures.saturating_add(1) } else { 0 };
            tokio::select! {
                biased;
                () = self.closing.cancelled() => break,
                () = wait(pause) => {}
                () = self.news.due(self.lag), if !has_failed => {}
            }
        }
        // What ended while the host shut down.
        let Some(store) = self.store.upgrade() else { return };
        let last = async {
            while let Some(pass) = self.news.begin_pass(Duration::ZERO) {
                let quick = Pace { closing: CancellationToken::new(), rests: false };
                for (id, upto) in pass {
                    index(&store, &id, upto, &quick).await?;
                }
            }
            Ok::<_, NotIndexed>(())
        };
        // The next host goes on where this one is.
        let _late = tokio::time::timeout(LAST, last).await;
    }

    async fn step(&mut self, store: &SessionStore) -> Step {
        let began = Instant::now();
        if let Some(pass) = self.news.begin_pass(self.lag) {
            let left = self.index_news(store, pass).await;
            let step = if left.is_empty() { Step::Worked(Duration::ZERO) } else { Step::Failed };
            self.news.end_pass(left);
            return step;
        }
        let pace = Pace { closing: self.closing.clone(), rests: true };
        match self.earlier.step(store, &pace).await {
            Ok(true) => Step::Worked(began.elapsed()),
            Ok(false) => Step::Nothing,
            Err(error) => {
                self.tell(&error);
                Step::Failed
            }
        }
    }

    /// Said once of an index that stays as it is.
    fn tell(&self, error: &HostError) {
        if self.failures == 0 {
            let error = chain(error);
            tracing::warn!(parent: None, error, "the index for searches cannot be brought up to date; trying again");
        }
    }
}

impl Indexing {
    /// Indexes news, and gives those that are left when that fails or is broken off.
    async fn index_news(&self, store: &SessionStore, pass: Vec<(SessionId, u64)>) -> Vec<(SessionId, u64)> {
        let pace = Pace { closing: self.closing.clone(), rests: false };
        let mut news = pass.into_iter();
        while let Some((id, upto)) = news.next() {
            let goes_on = match index(store, &id, upto, &pace).await {
                // What was broken off is looked at once more at the end.
                Ok(()) => !self.closing.is_cancelled(),
                Err(NotIndexed::Index(error)) => {
                    self.tell(&error);
                    false
                }
                Err(NotIndexed::Session(error)) => {
                    tracing::debug!(parent: None, session = %id, error = chain(&error), "not indexed");
                    true
                }
            };
            if !goes_on {
                return std::iter::once((id, upto)).chain(news).collect();
            }
        }
        Vec::new()
    }
}

/// Waits so long; for ever without a time.
async fn wait(pause: Option<Duration>) {
    match pause {
        Some(Duration::ZERO) => {}
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

impl Earlier {
    /// Indexes the next session that is not live. False: there is none any more.
    async fn step(&mut self, store: &SessionStore, pace: &Pace) -> Result<bool, HostError> {
        if self.page.is_empty() && !self.done {
            let page = store.log.unindexed(self.place.clone(), PAGE).await;
            self.page = page.map_err(|error| store::unreadable(&error))?.into();
            self.done = self.page.is_empty();
        }
        let Some(next) = self.page.front() else { return Ok(false) };
        if let Some(id) = SessionId::parse(&next.id) {
            match index_to_the_end(store, &id, next.last_seq, pace).await {
                Err(NotIndexed::Index(error)) => return Err(error),
                // One that cannot be read holds up no other.
                Err(NotIndexed::Session(error)) => {
                    tracing::debug!(parent: None, session = %id, error = chain(&error), "not indexed")
                }
                Ok(()) => {}
            }
        }
        self.place = self.page.pop_front().map(|next| (next.updated_ms, next.id));
        Ok(true)
    }
}

/// How it goes on between pieces.
struct Pace {
    closing: CancellationToken,
    /// It rests for as long as it worked.
    rests: bool,
}

/// Indexes the turns of a session that have ended, up to event `upto`.
async fn index(store: &SessionStore, id: &SessionId, upto: u64, pace: &Pace) -> Result<(), NotIndexed> {
    index_turns(store, id, (upto, false), pace).await
}

/// The same for one that is not live: the last turn is over, however it ended.
async fn index_to_the_end(
    store: &SessionStore,
    id: &SessionId,
    last: u64,
    pace: &Pace,
) -> Result<(), NotIndexed> {
    index_turns(store, id, (last, true), pace).await
}

async fn index_turns(
    store: &SessionStore,
    id: &SessionId,
    (upto, is_over): (u64, bool),
    pace: &Pace,
) -> Result<(), NotIndexed> {
    let known = store.log.indexed(id.as_str()).await;
    let mut after = match known.map_err(|error| NotIndexed::Index(store::unreadable(&error)))? {
        Some(after) if after < upto => after,
        Some(_) => return Ok(()),
        None => return check_gone(store, id).await,
    };
    let unreadable = |error: CursorError| NotIndexed::Session(error.into());
    let mut cursor = store.log.cursor(id.as_str(), after).await.map_err(unreadable)?;
    let mut turns = Turns::new(after);
    let mut began = Instant::now();
    while cursor.position() < upto && !pace.closing.is_cancelled() {
        let Some(block) = cursor.next().await.map_err(unreadable)? else { break };
        for event in block.events().take_while(|event| event.seq <= upto) {
            turns.see(&event);
            if turns.has_waiting(TURNS, TEXT) {
                after = hand_over(store, id, after, &mut turns).await?;
            }
        }
        if pace.rests {
            tokio::time::sleep(began.elapsed()).await;
            began = Instant::now();
        }
    }
    if is_over && cursor.position() >= upto {
        turns.over(upto);
    }
    hand_over(store, id, after, &mut turns).await.map(drop)
}

/// A session that the index does not have needs none if it is gone. Else the index was not told of it yet, which waits for
/// whoever has it locked.
async fn check_gone(store: &SessionStore, id: &SessionId) -> Result<(), NotIndexed> {
    match store.row(id).await {
        Err(HostError::UnknownSession { .. }) => Ok(()),
        Err(error) => Err(NotIndexed::Session(error)),
        Ok(_) => {
            let detail = "the index does not have the session yet".to_owned();
            Err(NotIndexed::Index(HostError::History { detail }))
        }
    }
}

/// Gives the event up to which the session is indexed then.
async fn hand_over(
    store: &SessionStore,
    id: &SessionId,
    after: u64,
    turns: &mut Turns,
) -> Result<u64, NotIndexed> {
    let (said, upto) = turns.take();
    if upto == after {
        return Ok(after);
    }
    let said = said.into_iter().map(Said::into_text).collect();
    match store.log.index(id.as_str(), (after, upto), said).await {
        Ok(true) => Ok(upto),
        // Another process was faster, or it was deleted.
        Ok(false) => {
            let detail = "it is indexed elsewhere".to_owned();
            Err(NotIndexed::Session(HostError::History { detail }))
        }
        Err(error) => Err(NotIndexed::Index(error.into())),
    }
}
