//! What is to be indexed: news of sessions for the task that keeps the index up (`search/indexing.rs`).
//!
//! News wait for a moment, so that the turns of all sessions that end within it are indexed in one pass, unless somebody searches.
//! Bounded by the number of sessions: each stands in it once. What was said is not in it: that is read from the events in its time.

use acpd_record::SessionId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Sessions with news that are indexed at once.
const MOST: usize = 256;

/// Sessions in which turns have ended since they were indexed, each once, with an event up to which they are to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsearched(Arc<News>);

#[derive(Debug, Default)]
struct News {
    state: Mutex<State>,
    /// There is a first one, or it is to be sooner.
    arrived: Notify,
    /// A pass is over.
    passed: Notify,
}

#[derive(Debug, Default)]
struct State {
    sessions: BTreeMap<SessionId, u64>,
    /// When the first of them came.
    since: Option<Instant>,
    /// Somebody waits for them.
    is_asked: bool,
    /// There is who indexes them.
    is_served: bool,
    /// Passes that have begun, those that are over, and whether the last of these has left something.
    begun: u64,
    over: u64,
    has_left: bool,
}

impl Unsearched {
    /// What stands up to event `seq` of a session can be indexed. That may not be committed yet.
    pub(crate) fn note(&self, session: &SessionId, seq: u64) {
        let wakes = {
            let mut state = self.0.state.lock();
            let before = state.sessions.len();
            let upto = state.sessions.entry(session.clone()).or_default();
            *upto = seq.max(*upto);
            state.since.get_or_insert_with(Instant::now);
            let now = state.sessions.len();
            now > before && (now == 1 || now == MOST)
        };
        if wakes {
            self.0.arrived.notify_one();
        }
    }

    /// Whoever searches can rely on somebody who indexes.
    pub(crate) fn serve(&self) {
        self.0.state.lock().is_served = true;
    }

    /// Waits until a pass is due: `lag` behind the first of the news, or at once if there are many or somebody asks.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn due(&self, lag: Duration) {
        loop {
            let until = match self.0.state.lock().due(lag) {
                Due::Now => return,
                Due::At(at) => Some(at),
                Due::Never => None,
            };
            tokio::select! {
                () = self.0.arrived.notified() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// Begins a pass over all news, if one is due.
    pub(crate) fn begin_pass(&self, lag: Duration) -> Option<Vec<(SessionId, u64)>> {
        let mut state = self.0.state.lock();
        if !matches!(state.due(lag), Due::Now) {
            return None;
        }
        (state.since, state.is_asked) = (None, false);
        state.begun += 1;
        Some(std::mem::take(&mut state.sessions).into_iter().collect())
    }

    /// The pass is over; these are left.
    pub(crate) fn end_pass(&self, left: impl IntoIterator<Item = (SessionId, u64)>) {
        let mut has_left = false;
        for (session, seq) in left {
            has_left = true;
            self.note(&session, seq);
        }
        {
            let mut state = self.0.state.lock();
            (state.over, state.has_left) = (state.begun, has_left);
        }
        self.0.passed.notify_waiters();
    }

    /// Waits until all that was noted before is indexed, which is not put off then. False: not all of it could be.
    ///
    /// # Cancel safety
    /// Safe: it only waits.
    pub(crate) async fn indexed(&self) -> bool {
        let pass = {
            let mut state = self.0.state.lock();
            if !state.is_served || (state.sessions.is_empty() && state.begun == state.over) {
                return true;
            }
            // It is tried again in its time.
            if state.has_left && state.begun == state.over {
                return false;
            }
            state.is_asked = true;
            // What waits is in the one behind that which goes on.
            state.begun + u64::from(!state.sessions.is_empty())
        };
        self.0.arrived.notify_one();
        loop {
            let mut passed = std::pin::pin!(self.0.passed.notified());
            // From here on none is missed.
            passed.as_mut().enable();
            {
                let state = self.0.state.lock();
                if state.over >= pass {
                    return !state.has_left;
                }
            }
            passed.await;
        }
    }
}

/// When a pass is due.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Now,
    At(Instant),
    Never,
}

impl State {
    fn due(&self, lag: Duration) -> Due {
        match self.since {
            None => Due::Never,
            Some(_) if self.is_asked || self.sessions.len() >= MOST => Due::Now,
            Some(since) if since + lag <= Instant::now() => Due::Now,
            Some(since) => Due::At(since + lag),
        }
    }
}

/// For ever without a time.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG: Duration = Duration::from_millis(200);

    fn id(name: &str) -> SessionId {
        SessionId::parse(name).expect("an id")
    }

    // issue 29: the turns that end within the lag are indexed together
    #[tokio::test(start_paused = true)]
    async fn news_wait_for_each_other() {
        let (news, begin) = (Unsearched::default(), Instant::now());
        news.note(&id("a"), 3);
        assert_eq!(news.begin_pass(LAG), None);
        tokio::time::advance(LAG / 2).await;
        for seq in [7, 5] {
            news.note(&id("a"), seq);
            news.note(&id("b"), seq + 1);
        }
        news.due(LAG).await;
        assert_eq!(begin.elapsed(), LAG);
        assert_eq!(news.begin_pass(LAG), Some(vec![(id("a"), 7), (id("b"), 8)]));
        assert_eq!(news.begin_pass(LAG), None);
        // What could not be indexed waits again.
        news.end_pass([(id("b"), 8)]);
        assert_eq!(news.begin_pass(LAG), None);
        news.due(LAG).await;
        assert_eq!(news.begin_pass(LAG), Some(vec![(id("b"), 8)]));
    }

    // issue 29: what waits is bounded
    #[tokio::test(start_paused = true)]
    async fn many_sessions_do_not_wait() {
        let (news, begin) = (Unsearched::default(), Instant::now());
        let mut due = Box::pin(news.due(LAG));
        for at in 0..MOST {
            assert!(futures_util::poll!(&mut due).is_pending(), "{at}");
            news.note(&id(&format!("s{at}")), 1);
        }
        due.await;
        assert_eq!(
            (begin.elapsed(), news.begin_pass(LAG).map(|pass| pass.len())),
            (Duration::ZERO, Some(MOST))
        );
    }

    // issue 29: a search waits for what was said before it, and for no lag; it is told when that could not be indexed
    #[tokio::test(start_paused = true)]
    async fn who_asks_waits_for_no_lag() {
        let (news, begin) = (Unsearched::default(), Instant::now());
        news.note(&id("a"), 3);
        assert!(news.indexed().await, "nobody indexes: it would wait in vain");
        news.serve();
        for left in [None, Some((id("b"), 4))] {
            // One pass goes on, and has not what comes now.
            let is_whole = left.is_none();
            let mut early = Box::pin(news.indexed());
            assert!(futures_util::poll!(&mut early).is_pending());
            assert!(news.begin_pass(LAG).is_some());
            news.note(&id("b"), 4);
            let mut late = Box::pin(news.indexed());
            assert!(futures_util::poll!(&mut late).is_pending());
            news.end_pass([]);
            assert!(early.await);
            assert!(futures_util::poll!(&mut late).is_pending());
            assert_eq!(news.begin_pass(LAG), Some(vec![(id("b"), 4)]));
            news.end_pass(left);
            assert_eq!(late.await, is_whole);
            assert_eq!(begin.elapsed(), Duration::ZERO);
            news.note(&id("a"), 5);
        }
        assert!(!news.indexed().await, "it is tried again later");
    }
}
