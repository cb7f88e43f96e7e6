//! Tasks with an owner.
//!
//! A [`TaskScope`] is the only place that spawns: it tracks its tasks, reports a panic where it happens and lets
//! the owner wait until the last child is gone. It decides nothing about when work is wanted; that is what the
//! token is for.

use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// A future by its address. What is awaited by another crate is compiled there, each time anew; behind an address it is
/// compiled once, where it is made.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tracker, a cancellation token and a span, shared by the tasks of one owner.
#[derive(Clone, Debug)]
pub struct TaskScope {
    tracker: TaskTracker,
    token: CancellationToken,
    span: tracing::Span,
}

impl TaskScope {
    /// A scope whose tasks log inside `span`.
    pub fn new(span: tracing::Span) -> Self {
        Self { tracker: TaskTracker::new(), token: CancellationToken::new(), span }
    }

    /// A scope below this one: cancelled with it, waited for by it.
    pub fn child(&self, span: tracing::Span) -> Self {
        Self { tracker: self.tracker.clone(), token: self.token.child_token(), span }
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
        // Put together without an async block, which would hold the task twice, and as one task: there may be thousands.
        let caught = AssertUnwindSafe(task.instrument(self.span.clone())).catch_unwind();
        let told = caught.map(move |ended| match ended {
            Ok(output) => Some(output),
            Err(panic) => {
                tracing::error!(task = name, panic = panic_message(&*panic), "a task ended badly");
                None
            }
        });
        self.tracker.spawn(told)
    }

    /// Waits until every task of the scope has ended. New tasks may still be started while it waits.
    pub async fn finished(&self) {
        self.tracker.close();
        self.tracker.wait().await;
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
