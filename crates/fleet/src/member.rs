//! A node's part in its fleet: it says that it is there, writes its sessions into the directory, and follows it.
//!
//! Loops that never end and wait for nothing of one another, so that an engine that does not answer holds up nothing but
//! itself. What is decided is in [`Published`](crate::published::Published), [`Directory`] and [`Lease`]. Not here: where the sessions
//! come from.

mod archiving;
mod beating;
mod claiming;
mod fencing;
mod following;
mod publishing;
mod removing;
mod taking_up;
mod view;

pub use claiming::{Claim, Claimed};
pub use removing::{NotRemoved, Removed};
pub use view::{Owned, Sight};

use crate::archive::Run;
use crate::directory::Directory;
use crate::engine::{Change, Engine, EngineError, Pending, Revision};
use crate::history::History;
use crate::lease::{Lease, Standing};
use crate::name::NodeName;
use crate::published::{Published, Row};
use crate::record::{NodeRecord, SessionRecord};
use acpd_record::SessionId;
use claiming::Claims;
use parking_lot::{Mutex, RwLock};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How long after its start a node that was told nothing yet holds up what may be for others.
const BEGINNING: Duration = Duration::from_secs(2);
/// Heartbeats in which all nodes find that the engine answers again, and tell what they have.
const AFTERWARDS: u32 = 2;
/// How long a node that leaves waits for the engine.
const FAREWELL: Duration = Duration::from_secs(1);

/// The sessions of this node.
pub trait Local: Debug + Send + Sync {
    /// Those that have changed since this moment, in milliseconds since 1970; with the least number there is, all.
    fn changed(&self, since_ms: i64) -> Pending<'_, Result<Vec<Row>, String>>;

    /// How many more there is room for.
    fn room(&self) -> u32;

    /// The next events of one of them, behind this one; about as many as a piece of the archive holds. None: there are none, or the
    /// session is gone.
    fn run<'a>(&'a self, session: &'a SessionId, after: u64) -> Pending<'a, Result<Option<Run>, String>>;

    /// What becomes of those that other nodes may take up, from now on.
    fn fence(&self, fence: Fence);

    /// Those that other nodes may take up end then, whatever becomes of this node, unless a later time is said before.
    fn counts_until(&self, until: Instant);

    /// Another node has taken one of them up: it ends here, and its id is free when this is done.
    fn supersede<'a>(&'a self, session: &'a SessionId, by: &'a NodeName) -> Pending<'a, Result<(), String>>;

    /// Takes up a session of another node with its history, which begins with the first event. It is there whole or not at all;
    /// fine if it is there already.
    fn take_up<'a>(&'a self, record: &'a SessionRecord, history: History) -> Pending<'a, Result<(), String>>;
}

/// Which of the sessions that other nodes may take up run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// All.
    Down,
    /// Those that were there at the start of this node; none begins, and none takes a prompt.
    ForNew,
    /// None: those that run end.
    ForAll,
}

/// A node in its fleet. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Member {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    engine: Arc<dyn Engine>,
    lease: Lease,
    me: Mutex<Me>,
    /// Told when what this node says of itself has changed.
    changed: Notify,
    directory: RwLock<Watched>,
    published: Mutex<Published>,
    /// Sessions that are to begin here.
    claims: Mutex<Claims>,
    /// Told when own sessions are to be written at once.
    news: Notify,
    /// How often they were looked at and written.
    passes: watch::Sender<u64>,
    /// Whether this node leaves, and all is to be written that there is.
    is_leaving: AtomicBool,
    /// How often the engine has not taken what it was given.
    refused_entries: AtomicU64,
    refused_pieces: AtomicU64,
    /// Whether all that is there was told once.
    was_told: watch::Sender<bool>,
    origin: Instant,
}

#[derive(Debug)]
struct Me {
    record: NodeRecord,
    revision: Option<Revision>,
    /// When the last heartbeat that was taken was begun.
    heard: Option<Duration>,
    /// Why the engine does not have it, in one line.
    trouble: Option<String>,
}

#[derive(Debug)]
struct Watched {
    directory: Directory,
    /// Whether changes are told as they come.
    is_told: bool,
    /// When what was known may have been old for the last time, after it had not been.
    stale_at: Option<Duration>,
}

impl Member {
    /// A node that has said nothing yet.
    pub fn new(engine: Arc<dyn Engine>, mut record: NodeRecord, lease: Lease) -> Self {
        record.incomplete = true;
        let me = Me { record, revision: None, heard: None, trouble: None };
        let directory = Watched { directory: Directory::new(), is_told: false, stale_at: None };
        let shared = Shared {
            engine,
            lease,
            me: Mutex::new(me),
            changed: Notify::new(),
            directory: RwLock::new(directory),
            published: Mutex::default(),
            claims: Mutex::default(),
            news: Notify::new(),
            passes: watch::Sender::new(0),
            is_leaving: AtomicBool::new(false),
            refused_entries: AtomicU64::new(0),
            refused_pieces: AtomicU64::new(0),
            was_told: watch::Sender::new(false),
            origin: Instant::now(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What this node says of itself.
    pub fn me(&self) -> NodeRecord {
        self.shared.me.lock().record.clone()
    }

    /// Says something else of this node from now on.
    pub fn change(&self, change: impl FnOnce(&mut NodeRecord)) {
        let mut me = self.shared.me.lock();
        let before = me.record.clone();
        change(&mut me.record);
        if me.record != before {
            self.shared.changed.notify_one();
        }
    }

    /// Why the fleet does not know of this node, in one line.
    pub fn trouble(&self) -> Option<String> {
        self.shared.me.lock().trouble.clone()
    }

    /// Whether what is known of the fleet may be old, because the engine does not answer.
    pub fn is_stale(&self) -> bool {
        !self.shared.directory.read().is_told || self.standing() != Standing::Held
    }

    /// Whether other nodes may have sessions that are not known here: the engine does not answer, or did not a moment ago, a node is
    /// not heard, or has not told all that it has.
    pub fn is_behind(&self) -> bool {
        let pause = self.shared.lease.heartbeat() * AFTERWARDS;
        let (now, lease) = (self.now(), self.judging());
        if self.is_stale() {
            return true;
        }
        let watched = self.shared.directory.read();
        watched.stale_at.is_some_and(|at| now.saturating_sub(at) < pause)
            || watched.directory.lacks_some(now, lease)
    }

    /// How this node stands with the engine.
    pub fn standing(&self) -> Standing {
        let heard = self.shared.me.lock().heard;
        heard.map_or(Standing::Fenced, |heard| self.shared.lease.standing(self.now().saturating_sub(heard)))
    }

    /// Whether this node was not told yet what there is: of a session that it does not know nothing can be said.
    pub fn is_new(&self) -> bool {
        !*self.shared.was_told.borrow()
    }

    /// Waits for that at the beginning of a node's life, which takes moments where the engine answers; at once later.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn told(&self) {
        if !self.is_new() {
            return;
        }
        let mut was_told = self.shared.was_told.subscribe();
        let told = was_told.wait_for(|was_told| *was_told);
        // Late, what is known by then has to do.
        let _late = tokio::time::timeout_at(self.shared.origin + BEGINNING, told).await;
    }

    /// How often the engine has refused an entry, and a piece of the archive.
    pub fn refusals(&self) -> (u64, u64) {
        let refused = |of: &AtomicU64| of.load(Ordering::Relaxed);
        (refused(&self.shared.refused_entries), refused(&self.shared.refused_pieces))
    }

    /// Events of own sessions that are not in the archive yet.
    pub fn lag(&self) -> u64 {
        self.shared.published.lock().lag()
    }

    /// The events of a session in the archive, behind one of them.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub async fn history(&self, session: &SessionId, after: u64) -> Result<History, EngineError> {
        History::open(Arc::clone(&self.shared.engine), session.clone(), after).await
    }

    /// Does a node's part, with its own sessions; never ends.
    pub async fn run(&self, local: &dyn Local) {
        let exchange = async {
            // First, so that the directory is never believed about a session that is here.
            self.learn_all(local).await;
            tokio::join!(self.follow(), self.publish(local), self.archive(local))
        };
        tokio::join!(
            self.beat(local),
            exchange,
            self.fence(local),
            self.supersede(local),
            self.take_up(local)
        );
    }

    /// Leaves the fleet: its sessions are shown as those of a node that is gone. How they ended is told before.
    pub async fn leave(&self) {
        let is_told = self.tell_all().await;
        let name = self.me().name;
        let leaving = async {
            if is_told {
                self.say_that_it_leaves().await;
            }
            self.shared.engine.remove_node(&name).await
        };
        let removed = tokio::time::timeout(FAREWELL, leaving).await;
        if !matches!(removed, Ok(Ok(()))) {
            tracing::debug!("the fleet learns by the lease that this node is gone");
        }
    }

    /// The directory has this of an own session, as was read just now. The watch may tell it later: until then this node would take the
    /// session for its own, and not have it any more.
    fn found(&self, record: &SessionRecord, revision: Revision) {
        self.knows(record, revision);
        self.hear_of_own(record, revision);
    }

    /// The directory has this of a session that may be this node's own.
    fn hear_of_own(&self, record: &SessionRecord, revision: Revision) {
        let is_false = self.shared.published.lock().found(record, revision, &self.me());
        if is_false {
            let (session, node) = (&record.session, &record.node);
            tracing::warn!(%session, %node, "the directory names another owner of a session that is here; its entry is written again");
        }
    }

    /// The directory has this of a session, before the watch tells it: what is told of it until then is older.
    fn knows(&self, record: &SessionRecord, revision: Revision) {
        let change = Change::Session(Box::new(record.clone()), revision);
        self.shared.directory.write().directory.apply(change, self.now());
    }

    fn now(&self) -> Duration {
        self.shared.origin.elapsed()
    }

    /// After how long another node counts as gone; never while this one may have missed what the others say.
    fn judging(&self) -> Option<Duration> {
        (!self.is_stale()).then(|| self.shared.lease.lease())
    }
}
