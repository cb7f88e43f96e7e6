//! Tasks with an owner.
//!
//! A [`TaskScope`] is the only place that spawns: it tracks its tasks, reports a panic where it happens and lets
//! the owner wait until the last child is gone. It decides nothing about when work is wanted; that is what the
//! token is for.

use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// A future by its address. What is awaited by another crate is compiled there, each time anew; behind an address it is
/// compiled once, where it is made.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The target of all spans: what a line belongs to is told with it at every level, so a log's filter has to let this
/// target through.
pub const SPANS: &str = "acpd_spans";

/// A count of tasks, a cancellation token and a span, shared by the tasks of one owner.
#[derive(Clone, Debug)]
pub struct TaskScope {
    tasks: Arc<TaskCount>,
    token: CancellationToken,
    span: tracing::Span,
}

/// How many tasks of a scope run, with those of the scopes below it. A scope knows the one above it and none below: of
/// those that have ended nothing is left.
#[derive(Debug, Default)]
struct TaskCount {
    running: AtomicUsize,
    none_left: Notify,
    above: Option<Arc<TaskCount>>,
}

/// One task, counted in its scope and in those above.
struct Counted(Arc<TaskCount>);

impl TaskCount {
    fn up(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |count| count.above.as_deref())
    }
}

impl Counted {
    fn new(tasks: &Arc<TaskCount>) -> Self {
        for count in tasks.up() {
            count.running.fetch_add(1, Ordering::Relaxed);
        }
        Self(Arc::clone(tasks))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        for count in self.0.up() {
            // What a task did is seen by those that wait for it.
            if count.running.fetch_sub(1, Ordering::AcqRel) == 1 {
                count.none_left.notify_waiters();
            }
        }
    }
}

impl TaskScope {
    /// A scope whose tasks log inside `span`.
    pub fn new(span: tracing::Span) -> Self {
        Self { tasks: Arc::default(), token: CancellationToken::new(), span }
    }

    /// A scope below this one: cancelled with it, waited for by it. Its own end waits for its own tasks only.
    pub fn child(&self, span: tracing::Span) -> Self {
        let tasks = TaskCount { above: Some(Arc::clone(&self.tasks)), ..TaskCount::default() };
        Self { tasks: Arc::new(tasks), token: self.token.child_token(), span }
    }

    /// The same scope, for tasks that log inside `span`.
    pub fn within(&self, span: tracing::Span) -> Self {
        Self { tasks: Arc::clone(&self.tasks), token: self.token.clone(), span }
    }

    /// The span of its tasks.
    pub fn span(&self) -> &tracing::Span {
        &self.span
    }

    /// The token that asks the tasks of this scope to end.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Starts `task`; its panic is logged under `name` and does not reach the others.
    pub fn spawn<F>(&self, name: &'static str, task: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // By its address from here on: what carries a task is then compiled once for each output, not once for each task.
        let task: Pending<'_, F::Output> = Box::pin(task);
        self.spawn_lasting(name, task)
    }

    /// The same for a task of which there is one for each session, as long as the session lives. It is carried in one
    /// piece, which is compiled for each such task, and is a quarter of a kibibyte less.
    pub fn spawn_lasting<F>(&self, name: &'static str, task: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let counted = Counted::new(&self.tasks);
        // Put together without an async block, which would hold the task twice, and as one task: there may be thousands.
        let told = AssertUnwindSafe(task).catch_unwind().map(move |ended| {
            // Whether it ends or is dropped.
            let _counted = &counted;
            match ended {
                Ok(output) => Some(output),
                Err(panic) => {
                    tracing::error!(task = name, panic = panic_message(&*panic), "a task ended badly");
                    None
                }
            }
        });
        #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
        tokio::spawn(told.instrument(self.span.clone()))
    }

    /// Waits until every task of the scope, and of those below it, has ended. New tasks may still be started while it
    /// waits.
    pub async fn finished(&self) {
        loop {
            let none_left = self.tasks.none_left.notified();
            tokio::pin!(none_left);
            // Before the look, so that an end right behind it is seen.
            none_left.as_mut().enable();
            if self.tasks.running.load(Ordering::Acquire) == 0 {
                return;
            }
            none_left.await;
        }
    }
}

/// Waits until a time, if there is one.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped.
pub async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        // In a box: it is rare, and room for it would be there all the time.
        Box::pin(tokio::time::sleep_until(at)).await;
    }
}

/// A time that moves while it is waited for, with much else.
///
/// Setting a timer may wake the thread that waits for timers. So this sets one when the time comes nearer, and else lets the old
/// one pass first.
#[derive(Debug, Default)]
pub(crate) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Waits until `due`; without a time forever, and then no timer is left.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn wait(&mut self, due: Option<Instant>) {
        let Some(due) = due else {
            self.0 = None;
            return std::future::pending().await;
        };
        let sleep = self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if due < sleep.deadline() {
            sleep.as_mut().reset(due);
        }
        sleep.as_mut().await;
        if sleep.deadline() < due {
            sleep.as_mut().reset(due);
            sleep.as_mut().await;
        }
    }
}

/// What a panic says of itself.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

impl Default for TaskScope {
    fn default() -> Self {
        Self::new(tracing::Span::none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The first scope is above the second, and that above the third; the fourth is beside the second.
    fn scopes() -> [TaskScope; 4] {
        let first = TaskScope::default();
        let second = first.child(tracing::Span::none());
        let (third, fourth) = (second.child(tracing::Span::none()), first.child(tracing::Span::none()));
        [first, second, third, fourth]
    }

    // ADR 21: what is to be done in silence is done when it is due, also where that moved meanwhile
    #[tokio::test(start_paused = true)]
    async fn an_alarm_goes_off_when_it_is_due() {
        let (begun, mut alarm) = (Instant::now(), Alarm::default());
        let at = |ms| Some(begun + Duration::from_millis(ms));
        let passed = || begun.elapsed().as_millis();
        let before =
            |due| tokio::time::timeout_at(begun + Duration::from_millis(due), std::future::pending::<()>());
        // Set, and given up before its time.
        for (due, until) in [(50, 10), (40, 20), (90, 30)] {
            tokio::select! {
                () = alarm.wait(at(due)) => panic!("it is not due"),
                _passed = before(until) => {}
            }
        }
        alarm.wait(at(100)).await;
        assert_eq!(passed(), 100, "the timers for 40 and 50 do not count");
        alarm.wait(at(90)).await;
        assert_eq!(passed(), 100, "it has passed");
        tokio::select! {
            () = alarm.wait(None) => panic!("it never is"),
            _passed = before(200) => {}
        }
        alarm.wait(at(250)).await;
        assert_eq!(passed(), 250);
    }

    // ADR 0012: a scope waits for its own tasks and for those below it, and for no other
    #[tokio::test]
    async fn a_scope_waits_for_those_below() {
        for (runs_in, waits) in [
            (0, [true, false, false, false]),
            (1, [true, true, false, false]),
            (2, [true, true, true, false]),
            (3, [true, false, false, true]),
        ] {
            let scopes = scopes();
            let (end, ended) = tokio::sync::oneshot::channel::<()>();
            drop(scopes[runs_in].within(tracing::Span::none()).spawn("task", ended));
            for (scope, waits) in scopes.iter().zip(waits) {
                assert_eq!(scope.finished().now_or_never().is_none(), waits, "{runs_in}: {scope:?}");
            }
            let all = futures_util::future::join_all(scopes.iter().map(TaskScope::finished));
            drop(end);
            all.await;
        }
    }

    // ADR 0012: of a scope that is gone nothing is left in the one above, whether its task ended or was dropped
    #[tokio::test]
    async fn ended_scopes_leave_nothing() {
        let scope = TaskScope::default();
        for _ in 0..100 {
            let child = scope.child(tracing::Span::none());
            drop(child.spawn("task", async {}));
            let lost = child.spawn("lost", std::future::pending::<()>());
            lost.abort();
            let count = Arc::downgrade(&child.tasks);
            child.finished().await;
            drop((child, lost.await));
            assert!(count.upgrade().is_none());
        }
        assert_eq!(Arc::strong_count(&scope.tasks), 1);
        scope.finished().await;
    }

    // ADR 0012: a child is cancelled with the scope above it, and not the other way
    #[tokio::test]
    async fn cancelling_goes_down() {
        let [first, second, third, fourth] = scopes();
        second.token().cancel();
        let cancelled = [&first, &second, &third, &fourth].map(|scope| scope.token().is_cancelled());
        assert_eq!(cancelled, [false, true, true, false]);
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_own_task() {
        let scope = TaskScope::default();
        let bad = scope.spawn("bad", async { panic!("on purpose") });
        let good = scope.spawn("good", async { 7 });
        scope.finished().await;
        assert_eq!(good.await.expect("the wrapper does not panic"), Some(7));
        assert_eq!(bad.await.expect("the wrapper does not panic"), None::<()>);
    }
}
