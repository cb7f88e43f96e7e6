//! The events of the session, as they are recorded: from the log of this process, or from a daemon.
//!
//! Owned by the conversation, for programs that want more than ACP has: numbers, and what answered a question. Invariant:
//! each event comes once, in order.

use super::home::Home;
use crate::daemon::{Daemon, Event, Followed, Follower};
use crate::stored::events_of;
use acpd_eventlog::Cursor;
use acpd_host::{SessionId, chain};
use std::collections::VecDeque;
use tokio::sync::mpsc;

/// Events of a daemon on their way here. Full: its stream is not read, and the daemon waits.
const EVENTS: usize = 64;

/// Where events come from.
pub(super) enum Feed {
    Here(Box<Cursor>, VecDeque<Event>),
    Daemon(mpsc::Receiver<Event>),
}

impl Feed {
    /// Follows a session from the event behind `after` on. None when it cannot be followed.
    pub(super) async fn open(home: &Home, session: &str, after: u64) -> Option<Self> {
        match home {
            Home::Here(local) => {
                let cursor = local.host.cursor(&SessionId::parse(session)?, after).await;
                let cursor = cursor.inspect_err(|error| tracing::warn!(error = chain(error), "no events"));
                Some(Self::Here(Box::new(cursor.ok()?), VecDeque::new()))
            }
            Home::Daemon { daemon, .. } => {
                let (sender, events) = mpsc::channel(EVENTS);
                let follower = Follower::new(Daemon::clone(daemon), session.to_owned(), after, true);
                daemon.scope().spawn("events", follow(follower, sender));
                Some(Self::Daemon(events))
            }
        }
    }

    /// The next event; None when there are no more.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Event> {
        let (cursor, ready) = match self {
            Self::Daemon(events) => return events.recv().await,
            Self::Here(cursor, ready) => (cursor, ready),
        };
        while ready.is_empty() {
            let block = cursor.next().await;
            let block = block.inspect_err(|error| tracing::warn!(error = chain(error), "no more events"));
            let block = block.ok().flatten()?;
            ready.extend(events_of(&block));
        }
        ready.pop_front()
    }
}

/// Follows a session of a daemon, also across its restarts, until it is over or not listened to.
async fn follow(mut follower: Follower, events: mpsc::Sender<Event>) {
    loop {
        let followed = tokio::select! {
            () = events.closed() => return,
            followed = follower.next() => followed,
        };
        match followed {
            Ok(Followed::Event(event)) => {
                if events.send(event).await.is_err() {
                    return;
                }
            }
            // The front end says what becomes of that.
            Ok(Followed::Lost { why, .. } | Followed::Unreachable { why }) => {
                tracing::info!(%why, "the events of the session were lost")
            }
            Ok(Followed::Back) => {}
            Ok(Followed::Over) => return,
            Err(error) => {
                tracing::warn!(error = chain(&error), "no more events");
                return;
            }
        }
    }
}
