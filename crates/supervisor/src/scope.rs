//! Tasks with an owner.
//!
//! A [`TaskScope`] is the only place that spawns: it tracks its tasks, reports a panic where it happens and lets
//! the owner wait until the last child is gone. It decides nothing about when work is wanted; that is what the
//! token is for.

use std::future::Future;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

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
        #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns")]
        let inner = tokio::spawn(task.instrument(self.span.clone()));
        self.tracker.spawn(async move {
            match inner.await {
                Ok(output) => Some(output),
                Err(error) => {
                    tracing::error!(task = name, %error, "a task ended badly");
                    None
                }
            }
        })
    }

    /// Waits until every task of the scope has ended. New tasks may still be started while it waits.
    pub async fn finished(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
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
