//! What becomes known once: told by one task, awaited by many.
//!
//! Owner: the task that tells it. Invariant: it is told once; a teller that is dropped without a word, by a panic say, is
//! seen too. Not for values that change: this is a fraction of the size of a `watch`, and each process has several.

use std::sync::Arc;
use tokio::sync::SetOnce;

/// Tells it.
#[derive(Debug)]
pub struct Teller<T>(Arc<SetOnce<Option<T>>>);

/// Learns it.
#[derive(Debug)]
pub struct Outcome<T>(Arc<SetOnce<Option<T>>>);

/// What is not known yet.
pub fn outcome<T>() -> (Teller<T>, Outcome<T>) {
    let cell = Arc::new(SetOnce::new());
    (Teller(Arc::clone(&cell)), Outcome(cell))
}

impl<T> Teller<T> {
    /// Tells it; what is told again is dropped.
    pub fn tell(&self, value: T) {
        let _again = self.0.set(Some(value));
    }
}

impl<T> Drop for Teller<T> {
    fn drop(&mut self) {
        let _told = self.0.set(None);
    }
}

impl<T> Outcome<T> {
    /// What was told, if it was.
    pub fn get(&self) -> Option<&T> {
        self.0.get().and_then(Option::as_ref)
    }

    /// Waits until it is told; None when it never will be.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn wait(&self) -> Option<&T> {
        self.0.wait().await.as_ref()
    }
}

impl<T> Clone for Outcome<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // architecture 5: the end of a task is seen, also of one that panics
    #[tokio::test]
    async fn it_is_told_once_or_never() {
        let (teller, outcome) = outcome();
        assert_eq!(outcome.get(), None);
        let telling = async {
            teller.tell(1);
            teller.tell(2);
        };
        let (told, ()) = tokio::join!(outcome.wait(), telling);
        assert_eq!(told, Some(&1));
        drop(teller);
        assert_eq!((outcome.get(), outcome.wait().await), (Some(&1), Some(&1)));

        let (teller, lost) = super::outcome::<u8>();
        drop(teller);
        assert_eq!((lost.get(), lost.wait().await), (None, None));
    }
}
