//! Keeps the index up with the log: at the end of each turn and each run, and in the background for what was recorded before.
//!
//! One task of the host, which reads the log as a viewer does and hands over small pieces; the writer writes one when it has
//! nothing else to do. What is not indexed when the process ends follows from the number that each session has in the index: the
//! next host goes on there. Sessions that another host has live are left to that.

use super::turns::{Said, Turns};
use crate::chain::chain;
use crate::error::HostError;
use crate::store::{self, SessionStore};
use crate::unsearched::Unsearched;
use acpd_eventlog::Unindexed;
use acpd_record::SessionId;
use acpd_supervisor::TaskScope;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Turns that are written together, of at most 28 KiB of text each: some milliseconds of work for the writer.
const TURNS: usize = 4;
/// Sessions that are looked up at once.
const PAGE: u32 = 64;
/// How long it waits after it could not write or read.
const AGAIN: Duration = Duration::from_secs(60);
/// How long a process that ends waits for it.
const LAST: Duration = Duration::from_millis(500);

/// Starts the task, if there is an index.
pub(crate) fn keep_indexing(store: &Arc<SessionStore>, scope: &TaskScope) {
    if !store.log.has_index() {
        return;
    }
    let (news, closing) = (store.unsearched.clone(), scope.token().clone());
    // It keeps nothing of the host alive.
    let indexing = Indexing { store: Arc::downgrade(store), news, closing, earlier: Earlier::default() };
    scope.spawn("index", indexing.run());
}

struct Indexing {
    store: Weak<SessionStore>,
    news: Unsearched,
    closing: CancellationToken,
    earlier: Earlier,
}

/// What was recorded before this host, as far as it is not looked through.
#[derive(Debug, Default)]
struct Earlier {
    page: VecDeque<Unindexed>,
    /// The last session of the page before.
    place: Option<(i64, String)>,
    done: bool,
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
                Step::Failed => Some(AGAIN),
            };
            tokio::select! {
                biased;
                () = self.closing.cancelled() => break,
                () = wait(pause) => {}
                () = self.news.arrived(), if pause.is_none() => {}
            }
        }
        // What ended while the host shut down.
        let Some(store) = self.store.upgrade() else { return };
        let last = async {
            while let Some((id, upto)) = self.news.take() {
                let quick = Pace { closing: CancellationToken::new(), rests: false };
                index(&store, &id, upto, &quick).await?;
            }
            Ok::<_, HostError>(())
        };
        // The next host goes on where this one is.
        let _late = tokio::time::timeout(LAST, last).await;
    }

    async fn step(&mut self, store: &SessionStore) -> Step {
        let began = Instant::now();
        if let Some((id, upto)) = self.news.take() {
            let pace = Pace { closing: self.closing.clone(), rests: false };
            return match index(store, &id, upto, &pace).await {
                Ok(()) => {
                    if self.closing.is_cancelled() {
                        // It may have broken off; that is looked at once more at the end.
                        self.news.note(&id, upto);
                    }
                    Step::Worked(Duration::ZERO)
                }
                Err(error) => {
                    tracing::debug!(parent: None, session = %id, error = chain(&error), "not indexed");
                    if !matches!(error, HostError::Log(_)) {
                        return Step::Worked(Duration::ZERO);
                    }
                    self.news.note(&id, upto);
                    Step::Failed
                }
            };
        }
        let pace = Pace { closing: self.closing.clone(), rests: true };
        match self.earlier.step(store, &pace).await {
            Ok(true) => Step::Worked(began.elapsed()),
            Ok(false) => Step::Nothing,
            Err(error) => {
                tracing::debug!(parent: None, error = chain(&error), "what was recorded earlier is not indexed");
                Step::Failed
            }
        }
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
                Err(error @ HostError::Log(_)) => return Err(error),
                // One that cannot be read holds up no other.
                Err(error) => {
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
async fn index(store: &SessionStore, id: &SessionId, upto: u64, pace: &Pace) -> Result<(), HostError> {
    index_turns(store, id, (upto, false), pace).await
}

/// The same for one that is not live: the last turn is over, however it ended.
async fn index_to_the_end(
    store: &SessionStore,
    id: &SessionId,
    last: u64,
    pace: &Pace,
) -> Result<(), HostError> {
    index_turns(store, id, (last, true), pace).await
}

async fn index_turns(
    store: &SessionStore,
    id: &SessionId,
    (upto, is_over): (u64, bool),
    pace: &Pace,
) -> Result<(), HostError> {
    let known = store.log.indexed(id.as_str()).await.map_err(|error| store::unreadable(&error))?;
    // One that is gone needs no index.
    let Some(mut after) = known.filter(|after| *after < upto) else { return Ok(()) };
    let mut cursor = store.log.cursor(id.as_str(), after).await?;
    let mut turns = Turns::new(after);
    let mut began = Instant::now();
    while cursor.position() < upto && !pace.closing.is_cancelled() {
        let Some(block) = cursor.next().await? else { break };
        for event in block.events().take_while(|event| event.seq <= upto) {
            turns.see(&event);
            if turns.waiting() >= TURNS {
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

/// Gives the event up to which the session is indexed then.
async fn hand_over(
    store: &SessionStore,
    id: &SessionId,
    after: u64,
    turns: &mut Turns,
) -> Result<u64, HostError> {
    let (said, upto) = turns.take();
    if upto == after {
        return Ok(after);
    }
    let said = said.into_iter().map(Said::into_text).collect();
    match store.log.index(id.as_str(), (after, upto), said).await {
        Ok(true) => Ok(upto),
        // Another process was faster, or it was deleted.
        Ok(false) => Err(HostError::History { detail: "it is indexed elsewhere".to_owned() }),
        Err(error) => Err(HostError::from(error)),
    }
}
