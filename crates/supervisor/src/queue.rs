//! A bounded queue that is nothing but a few words while it is empty.
//!
//! Owner: its receiver. Invariant: what is sent comes out once, in order; places that are held and values that wait
//! are never more than the limit. Not for streams of data: an mpsc channel of tokio is faster there, but it has room for
//! 32 values from the start, and each session has several queues that are empty most of the time.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};

struct Shared<T> {
    limit: usize,
    places: Semaphore,
    state: Mutex<State<T>>,
    /// The receiver has something to look at.
    arrived: Notify,
}

struct State<T> {
    waiting: VecDeque<T>,
    senders: usize,
}

/// Sends; each clone counts as a sender.
pub struct Sender<T>(Arc<Shared<T>>);

/// Takes what was sent. When it is dropped, so is what waits, and nothing is sent any more.
pub struct Receiver<T>(Arc<Shared<T>>);

/// Room for one value. Counts as a sender.
pub struct Place<T> {
    sender: Sender<T>,
    is_used: bool,
}

/// The value was not sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused<T> {
    /// All places are taken.
    Full(T),
    /// There is no receiver any more.
    Closed(T),
}

/// There is no receiver any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// A queue of at most `limit` values.
pub fn queue<T>(limit: usize) -> (Sender<T>, Receiver<T>) {
    let state = Mutex::new(State { waiting: VecDeque::new(), senders: 1 });
    let shared = Arc::new(Shared { limit, places: Semaphore::new(limit), state, arrived: Notify::new() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }

    fn is_idle(&self) -> bool {
        self.places.available_permits() == self.limit
    }

    /// Queues a value, for which a place was taken; gives it back when there is no receiver.
    fn push(&self, value: T) -> Result<(), T> {
        let mut state = self.state();
        // Closed before what waits is dropped, so nothing is left behind.
        if self.places.is_closed() {
            return Err(value);
        }
        state.waiting.push_back(value);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }
}

impl<T> Sender<T> {
    /// Sends without waiting.
    ///
    /// # Errors
    /// With the value, when there is no place or no receiver.
    pub fn try_send(&self, value: T) -> Result<(), Refused<T>> {
        match self.0.places.try_acquire() {
            Ok(place) => place.forget(),
            Err(_) if self.is_closed() => return Err(Refused::Closed(value)),
            Err(_) => return Err(Refused::Full(value)),
        }
        self.0.push(value).map_err(Refused::Closed)
    }

    /// Waits for a place, and sends.
    ///
    /// # Errors
    /// When there is no receiver any more.
    pub async fn send(&self, value: T) -> Result<(), Closed> {
        self.take_place().await?;
        self.0.push(value).map_err(|_| Closed)
    }

    /// Waits for a place and holds it; it is taken as long as the [`Place`] lives, or what was sent with it waits.
    ///
    /// # Errors
    /// When there is no receiver any more.
    ///
    /// # Cancel safety
    /// No place is lost when the future is dropped; its turn is.
    pub async fn place(&self) -> Result<Place<T>, Closed> {
        self.take_place().await?;
        Ok(Place { sender: self.clone(), is_used: false })
    }

    /// Waits until there is a place, or no receiver any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn room(&self) {
        drop(self.0.places.acquire().await);
    }

    /// Whether there is no receiver any more.
    pub fn is_closed(&self) -> bool {
        self.0.places.is_closed()
    }

    /// Whether nothing waits and no place is held.
    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    async fn take_place(&self) -> Result<(), Closed> {
        self.0.places.acquire().await.map_err(|_| Closed)?.forget();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.state().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.senders -= 1;
        let is_last = state.senders == 0;
        drop(state);
        if is_last {
            self.0.arrived.notify_one();
        }
    }
}

impl<T> Place<T> {
    /// Sends the value; it is dropped when there is no receiver.
    pub fn send(mut self, value: T) {
        self.is_used = self.sender.0.push(value).is_ok();
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        // The place of a value is given back when it is taken.
        if !self.is_used {
            self.sender.0.places.add_permits(1);
        }
    }
}

impl<T> Receiver<T> {
    /// The next value; None when there is no sender any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn recv(&mut self) -> Option<T> {
        loop {
            match self.take() {
                Ok(value) => return Some(value),
                Err(0) => return None,
                Err(_) => self.0.arrived.notified().await,
            }
        }
    }

    /// The next value, if one waits.
    pub fn try_recv(&mut self) -> Option<T> {
        self.take().ok()
    }

    /// How many values wait.
    pub fn len(&self) -> usize {
        self.0.state().waiting.len()
    }

    /// Whether no value waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing waits and no place is held.
    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    /// The next value, or how many senders there are.
    fn take(&mut self) -> Result<T, usize> {
        let mut state = self.0.state();
        let Some(value) = state.waiting.pop_front() else {
            // An empty queue keeps no memory.
            state.waiting = VecDeque::new();
            return Err(state.senders);
        };
        drop(state);
        self.0.places.add_permits(1);
        Ok(value)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.places.close();
        let waiting = std::mem::take(&mut self.0.state().waiting);
        drop(waiting);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("places", &self.0.places.available_permits()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("waiting", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // architecture 5: queues are bounded, and what is sent comes out in order
    #[tokio::test]
    async fn it_takes_no_more_than_its_limit() {
        let (sender, mut receiver) = queue(2);
        assert!(sender.is_idle() && receiver.is_empty());
        let place = sender.place().await.expect("there is a receiver");
        sender.try_send(1).expect("one place is left");
        assert_eq!(sender.try_send(2), Err(Refused::Full(2)));
        assert!(!receiver.is_idle());
        place.send(3);
        let taking = async { (receiver.recv().await, receiver.recv().await) };
        let (sent, taken) = tokio::join!(sender.send(4), taking);
        assert_eq!((sent, taken), (Ok(()), (Some(1), Some(3))));
        assert_eq!((receiver.len(), receiver.try_recv(), receiver.try_recv()), (1, Some(4), None));
        drop(sender.place().await);
        assert!(receiver.is_idle() && receiver.0.state().waiting.capacity() == 0);
    }

    // architecture 5: each end sees the end of the other
    #[tokio::test]
    async fn each_end_sees_that_the_other_is_gone() {
        let (sender, mut receiver) = queue(2);
        let place = sender.place().await.expect("there is a receiver");
        sender.try_send(1).expect("there is a place");
        let taking = async { (receiver.recv().await, receiver.recv().await, receiver.recv().await) };
        let sending = async {
            drop(sender);
            place.send(2);
        };
        let (taken, ()) = tokio::join!(taking, sending);
        assert_eq!(taken, (Some(1), Some(2), None), "a place is a sender");

        let (sender, mut receiver) = queue::<u8>(1);
        let (taken, ()) = tokio::join!(receiver.recv(), async { drop(sender) });
        assert_eq!(taken, None);

        let (sender, receiver) = queue(1);
        let value = Arc::new(());
        let place = sender.place().await.expect("there is a receiver");
        let closing = async {
            drop(receiver);
            place.send(Arc::clone(&value));
        };
        let (full, ()) = tokio::join!(sender.send(Arc::clone(&value)), closing);
        assert_eq!(full, Err(Closed));
        assert!(sender.is_closed() && matches!(sender.try_send(Arc::clone(&value)), Err(Refused::Closed(_))));
        sender.room().await;
        assert_eq!(Arc::strong_count(&value), 1, "what nothing takes is dropped");
    }
}
