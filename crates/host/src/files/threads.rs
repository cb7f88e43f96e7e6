//! The threads that do the file work of all sessions.
//!
//! Apart from those of the runtime: a file system that hangs keeps a thread for as long as it likes, and nothing calls it
//! back. Invariants: some threads are there from the start to the end, so files are served also where no further thread
//! can be had; no wait for one of them holds up the end of anything else. Not here: how much of it one session may use.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::Span;

/// Threads that are always there. Most of the time one has nothing to do.
const KEPT: usize = 2;
/// Threads at most; so many are there only when as many files hang. Full: work waits for one of them.
const MOST: usize = 512;
/// How long a thread beyond those stays without work.
const IDLE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

/// Why work was not done.
#[derive(Debug)]
pub(super) enum NotDone {
    /// There is no thread, and none can be had.
    NoThread(io::Error),
    /// It panicked.
    Lost,
}

/// Ends its threads when it is dropped, each after what it has under way.
#[derive(Debug)]
pub(super) struct Threads(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Bounded by the permits for requests, and by the sessions that begin. Each with what its lines belong to.
    work: VecDeque<(Span, Work)>,
    threads: usize,
    /// Those of them that wait for work.
    idle: usize,
    closed: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} threads, {} idle, {} waiting", self.threads, self.idle, self.work.len())
    }
}

impl Threads {
    /// Starts the threads that stay. Where they cannot be had now, they are tried again when there is work.
    pub(super) fn start() -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let mut state = shared.state.lock();
        for _ in 0..KEPT {
            if let Err(error) = begin(&shared, &mut state) {
                tracing::warn!(%error, "a thread for files cannot be had");
            }
        }
        drop(state);
        Self(shared)
    }

    /// Does `work` on one of them.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was not begun is not done then.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let (done, result) = oneshot::channel();
        let work = move || {
            if !done.is_closed() {
                // Its asker may have gone meanwhile.
                let _gone = done.send(work());
            }
        };
        self.hand_over(Box::new(work)).map_err(NotDone::NoThread)?;
        result.await.map_err(|_| NotDone::Lost)
    }

    fn hand_over(&self, work: Work) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.work.push_back((Span::current(), work));
        if state.idle < state.work.len() && state.threads < MOST {
            match begin(&self.0, &mut state) {
                Ok(()) => {}
                Err(error) if state.threads == 0 => {
                    state.work.pop_back();
                    return Err(error);
                }
                // It waits for one that is there.
                Err(error) => tracing::debug!(%error, "a further thread for files cannot be had"),
            }
        }
        self.0.changed.notify_one();
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.state.lock().closed = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    /// What a thread does until it is not needed any more.
    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some((span, work)) = state.work.pop_front() {
                drop(state);
                let in_span = span.enter();
                // Its caller learns that it is lost; the panic itself is on stderr.
                if catch_unwind(AssertUnwindSafe(work)).is_err() {
                    tracing::error!("the work on a file ended badly");
                }
                drop(in_span);
                state = self.state.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let mut waited_long = false;
            if state.threads > KEPT {
                waited_long = self.changed.wait_for(&mut state, IDLE).timed_out();
            } else {
                self.changed.wait(&mut state);
            }
            state.idle -= 1;
            if waited_long && state.work.is_empty() && state.threads > KEPT {
                break;
            }
        }
        state.threads -= 1;
    }
}

fn begin(shared: &Arc<Shared>, state: &mut State) -> io::Result<()> {
    let serving = Arc::clone(shared);
    thread::Builder::new().name("acpd-files".to_owned()).spawn(move || serving.serve())?;
    state.threads += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    /// Work that says when it begins, and waits for leave to go on.
    fn hanging(began: SyncSender<()>, until: Arc<Mutex<Receiver<()>>>) -> impl FnOnce() + Send + 'static {
        move || {
            began.send(()).expect("the test waits for it");
            let _released = until.lock().recv();
        }
    }

    fn begin_one(threads: &Threads) {
        let mut state = threads.0.state.lock();
        state.threads = 0;
        begin(&threads.0, &mut state).expect("a thread can be had");
    }

    // contract 2.2: what hangs takes no thread from others, and nothing waits for it in the end
    #[tokio::test]
    async fn work_that_hangs_holds_up_no_other() {
        let threads = Threads::start();
        let (began, begins) = sync_channel(32);
        let (release, until) = sync_channel::<()>(0);
        let until = Arc::new(Mutex::new(until));
        for _ in 0..32 {
            threads.hand_over(Box::new(hanging(began.clone(), Arc::clone(&until)))).unwrap();
        }
        for _ in 0..32 {
            begins.recv().unwrap();
        }
        assert_eq!(threads.run(|| 7).await.unwrap(), 7);
        // Its threads are still at it.
        drop(threads);
        drop(release);
    }

    // contract 2.2: what is not waited for any more is not begun
    #[tokio::test]
    async fn work_of_an_asker_that_is_gone_is_not_begun() {
        let threads = Threads(Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() }));
        // No thread takes it before one is started.
        threads.0.state.lock().threads = MOST;
        let (told, seen) = sync_channel(2);
        let also_told = told.clone();
        for (name, told) in [("dropped", told), ("kept", also_told)] {
            let mut asked = Box::pin(threads.run(move || told.send(name)));
            tokio::select! {
                biased;
                _ = &mut asked => panic!("there is no thread for it"),
                () = std::future::ready(()) => {}
            }
            if name == "kept" {
                begin_one(&threads);
                asked.await.unwrap().unwrap();
            }
        }
        drop(threads);
        assert_eq!(seen.iter().collect::<Vec<_>>(), ["kept"]);
    }

    // contract 2.2: a panic costs its own request and no thread
    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let threads = Threads::start();
        for _ in 0..2 * KEPT {
            let lost = threads.run(|| panic!("for the test")).await;
            assert!(matches!(lost, Err::<(), _>(NotDone::Lost)), "{lost:?}");
        }
        assert_eq!(threads.run(|| 7).await.unwrap(), 7);
    }
}
