//! Who watches a session, as far as the session has to know: who may be asked what.
//!
//! A viewer takes a seat and keeps it while it watches. The session looks when it has a question that not every
//! client understands, and when somebody has left to whom alone it was put.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What a viewer can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spectator {
    /// Its connection; no two connections have the same.
    pub connection: Arc<str>,
    /// It can fill in forms (ACP page "elicitation", mode `form`).
    pub forms: bool,
    /// It can open a URL (mode `url`).
    pub urls: bool,
    /// It reads files for agents, unsaved ones too.
    pub reads: bool,
    /// It writes files for agents.
    pub writes: bool,
}

/// The viewers of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audience {
    seats: Arc<Mutex<Seats>>,
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Seats {
    next: u64,
    taken: Vec<(u64, Spectator)>,
}

/// A place in an audience, until it is dropped.
#[derive(Debug)]
pub struct Seat {
    number: u64,
    audience: Audience,
}

impl Audience {
    /// Takes a seat.
    pub(crate) fn take_seat(&self, spectator: Spectator) -> Seat {
        let mut seats = self.seats();
        seats.next += 1;
        let number = seats.next;
        seats.taken.push((number, spectator));
        Seat { number, audience: self.clone() }
    }

    /// Whether somebody is there of whom `can` is true.
    pub(crate) fn any(&self, can: impl Fn(&Spectator) -> bool) -> bool {
        self.seats().taken.iter().any(|(_, spectator)| can(spectator))
    }

    /// Somebody of whom `can` is true: on the connection `first`, if that is there, or else who came first.
    pub(crate) fn one(&self, first: &str, can: impl Fn(&Spectator) -> bool) -> Option<Arc<str>> {
        let seats = self.seats();
        let able = || seats.taken.iter().map(|(_, spectator)| spectator).filter(|spectator| can(spectator));
        let found = able().find(|spectator| *spectator.connection == *first).or_else(|| able().next());
        found.map(|spectator| Arc::clone(&spectator.connection))
    }

    /// Whether a connection has a seat.
    pub(crate) fn has(&self, connection: &str) -> bool {
        self.any(|spectator| *spectator.connection == *connection)
    }

    /// Waits until somebody has left since this was awaited last.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn somebody_left(&self) {
        self.left.notified().await;
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.audience.seats().taken.retain(|(number, _)| *number != self.number);
        self.audience.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spectator(connection: &str, urls: bool) -> Spectator {
        Spectator { connection: connection.into(), forms: false, urls, reads: false, writes: false }
    }

    // PE-5: url mode is for one client, the prompter if it can
    #[test]
    fn one_is_chosen_and_who_left_is_not() {
        let audience = Audience::default();
        assert_eq!(audience.one("a", |_| true), None);
        let a = audience.take_seat(spectator("a", false));
        let b = audience.take_seat(spectator("b", true));
        let _c = audience.take_seat(spectator("c", true));
        assert!(audience.any(|who| who.urls) && !audience.any(|who| who.forms));
        assert_eq!(audience.one("a", |who| who.urls).as_deref(), Some("b"));
        assert_eq!(audience.one("c", |who| who.urls).as_deref(), Some("c"));
        drop((a, b));
        assert_eq!(audience.one("a", |who| who.urls).as_deref(), Some("c"));
    }
}
