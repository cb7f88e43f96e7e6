//! Follows a session's events, across losses of the connection and restarts of the daemon.
//!
//! Owned by the command that shows them. Invariants: events come in order, each once, without a hole, or there is an
//! error; once the daemon was there, if only to take a request, whatever may pass is waited out, with a bounded backoff and
//! for as long as a lost daemon is tried again; one that never was is an error at once.
//! It is over when the session has ended and all of its events were given.

use super::error::DaemonError;
use super::events::Event;
use super::request::Daemon;
use super::sessions::FindError;
use super::sse::{SseEvent, SseReader};
use crate::address::encoded;
use crate::clean::line;
use acpd_host::chain;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use http::header::{ACCEPT, HeaderName, HeaderValue};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::Instant;

/// The longest event: the longest line that can be configured, and what is around it.
const EVENT: usize = (1 << 30) + (1 << 20);
/// The daemon says something every 15 s, if only that it is there.
const SILENCE: Duration = Duration::from_secs(60);

/// The longest wait before another try, half of which is chance: still "at once" for a waiting person.
const LONGEST: Duration = Duration::from_secs(5);
/// From 100 ms on, as a daemon that restarts is back in less than a second; doubled each time. The followers of one do
/// not all come back in the same moment.
const BACKOFF: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(50))
    .with_max_delay(Duration::from_millis(2_500))
    .without_max_times()
    .with_jitter();

/// What happened.
#[derive(Debug)]
pub(crate) enum Followed {
    Event(Event),
    /// The daemon was lost; it is tried again after the wait.
    Lost {
        why: String,
        wait: Duration,
    },
    /// The node that has the session cannot be reached, and the fleet has no more events of it; it is tried again after a
    /// wait.
    Unreachable {
        why: String,
    },
    /// It is there again.
    Back,
    /// The session has ended, and there is nothing more.
    Over,
}

impl Followed {
    /// The same where it is the node of the session that was lost.
    fn of_node(self) -> Self {
        match self {
            Self::Lost { why, .. } => Self::Unreachable { why },
            other => other,
        }
    }
}

/// Follows one session.
pub(crate) struct Follower {
    daemon: Daemon,
    /// The session's id, or its beginning.
    named: String,
    /// Its whole id, once the daemon has told.
    id: Option<String>,
    /// The last event that was given.
    last: u64,
    stream: Option<Stream>,
    backoff: ExponentialBackoff,
    not_before: Option<Instant>,
    /// When it was lost, while it is.
    since: Option<Instant>,
    /// The daemon was there once: from then on it is waited for.
    known: bool,
    /// That the daemon was lost was said.
    away: bool,
    /// The daemon left events out, and was asked again.
    gaps: u32,
    /// The last event was the end of a run, which is the session's unless it was activated again.
    at_end: bool,
}

struct Stream {
    body: Incoming,
    reader: SseReader,
}

impl Follower {
    /// Follows a session, by its id or the beginning of it, from the event behind `after` on. Whether the daemon is `known`
    /// to have been there.
    pub(crate) fn new(daemon: Daemon, named: String, after: u64, known: bool) -> Self {
        Self {
            daemon,
            named,
            id: None,
            last: after,
            stream: None,
            backoff: BACKOFF.build(),
            not_before: None,
            since: None,
            known,
            away: false,
            gaps: 0,
            at_end: false,
        }
    }

    /// The next thing that happens.
    pub(crate) async fn next(&mut self) -> Result<Followed, FindError> {
        loop {
            let Some(stream) = &mut self.stream else {
                if let Some(at) = self.not_before {
                    tokio::time::sleep_until(at).await;
                    self.not_before = None;
                }
                match self.open().await {
                    Ok(stream) => self.stream = Some(stream),
                    Err(FindError::Daemon(error)) => {
                        let is_gone = error.is_of_node() && self.is_unreachable().await;
                        let lost = self.lost_or(error)?;
                        return Ok(if is_gone { lost.of_node() } else { lost });
                    }
                    Err(other) => return Err(other),
                }
                (self.known, self.since) = (true, None);
                if std::mem::take(&mut self.away) {
                    return Ok(Followed::Back);
                }
                continue;
            };
            match stream.reader.next_event() {
                Ok(Some(event)) => {
                    if let Some(followed) = self.take(&event)? {
                        return Ok(followed);
                    }
                    continue;
                }
                Ok(None) => {}
                Err(too_long) => return Err(self.daemon.unreadable(&too_long).into()),
            }
            match tokio::time::timeout(SILENCE, stream.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Some(bytes) = frame.data_ref() {
                        stream.reader.push(bytes);
                    }
                }
                Ok(Some(Err(error))) => return Ok(self.lost(&chain(&self.daemon.lost(error)))),
                Err(_) => return Ok(self.lost("the daemon says nothing any more")),
                Ok(None) => match self.is_over().await {
                    Ok(true) => return Ok(Followed::Over),
                    Ok(false) => return Ok(self.lost("the daemon closed the stream")),
                    // The stream ended behind the end of a run, as it should; a daemon that is gone by now has nothing
                    // to add.
                    Err(error) if self.at_end && error.may_pass() => return Ok(Followed::Over),
                    Err(error) => return self.lost_or(error),
                },
            }
        }
    }

    async fn open(&mut self) -> Result<Stream, FindError> {
        let id = match &self.id {
            Some(id) => id,
            None => self.id.insert(self.daemon.session(&self.named).await?.session_id),
        };
        let path = format!("/v1/sessions/{}/events?after={}", encoded(id), self.last);
        let headers = [
            (ACCEPT, HeaderValue::from_static("text/event-stream")),
            // The same again in the stream's own words, which go over the query's.
            (HeaderName::from_static("last-event-id"), HeaderValue::from(self.last)),
        ];
        let response = self.daemon.open(&path, headers).await?;
        Ok(Stream { body: response.into_body(), reader: SseReader::new(EVENT) })
    }

    fn take(&mut self, event: &SseEvent) -> Result<Option<Followed>, DaemonError> {
        if event.id.is_none() {
            if event.kind == "closed" {
                let told = acpd_wire::value(event.data.as_bytes());
                let text = |key: &str| line(told[key].as_str().unwrap_or_default(), 300);
                let words = [text("reason"), text("detail")].into_iter().filter(|text| !text.is_empty());
                let why = format!("the daemon closed the stream: {}", words.collect::<Vec<_>>().join(", "));
                let lost = self.lost(&why);
                // One that only broke off may be there again at once.
                let is_for_now = told["retryMs"].is_number();
                return Ok(Some(match told["reason"].as_str() {
                    Some("unreachable") if !is_for_now => Followed::Unreachable { why: text("detail") },
                    _ => lost,
                }));
            }
            return Ok(None);
        }
        let event = Event::read(&event.data).map_err(|error| self.daemon.unreadable(&error))?;
        if event.seq <= self.last {
            return Ok(None);
        }
        if event.seq > self.last + 1 {
            let gap = format!("event {} follows on {}", event.seq, self.last);
            self.gaps += 1;
            return match self.gaps {
                1 => Ok(Some(self.lost(&gap))),
                _ => Err(self.daemon.unreadable(&gap)),
            };
        }
        self.last = event.seq;
        self.gaps = 0;
        self.at_end = event.kind == "ended";
        self.backoff = BACKOFF.build();
        Ok(Some(Followed::Event(event)))
    }

    /// Whether the fleet has given up the node of the session for now: it may be a moment that it does not answer.
    async fn is_unreachable(&self) -> bool {
        let session = self.daemon.session_facts(self.id.as_deref().unwrap_or(&self.named)).await;
        session.is_ok_and(|session| session.unreachable_since.is_some())
    }

    /// Whether the session has ended, and all its events were given.
    async fn is_over(&self) -> Result<bool, DaemonError> {
        let session = self.daemon.session_facts(self.id.as_deref().unwrap_or(&self.named)).await?;
        Ok(session.ended && session.event_count <= self.last)
    }

    fn lost_or(&mut self, error: DaemonError) -> Result<Followed, FindError> {
        self.known |= error.was_there();
        let within = self.daemon.reconnect();
        if self.known && error.may_pass() && self.since.get_or_insert_with(Instant::now).elapsed() >= within {
            return Err(DaemonError::GivenUp { why: chain(&error), within }.into());
        }
        match self.known && error.may_pass() {
            true => Ok(self.lost(&chain(&error))),
            false => Err(error.into()),
        }
    }

    fn lost(&mut self, why: &str) -> Followed {
        self.stream = None;
        self.away = true;
        self.since.get_or_insert_with(Instant::now);
        let wait = self.backoff.next().unwrap_or(LONGEST);
        self.not_before = Some(Instant::now() + wait);
        Followed::Lost { why: line(why, 300), wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: `--follow` comes back with a bounded backoff
    #[test]
    fn waits_grow_up_to_a_bound_and_never_end() {
        let waits: Vec<u128> = BACKOFF.build().take(40).map(|wait| wait.as_millis()).collect();
        for (at, most) in [(0, 100), (1, 200), (2, 400), (3, 800), (6, 5_000), (39, 5_000)] {
            assert!((most / 2..=most).contains(&waits[at]), "{waits:?}");
        }
        assert!(waits.iter().all(|wait| *wait <= LONGEST.as_millis()), "{waits:?}");
    }
}
