//! The events of a session: as a stream that follows (SSE), or page by page (contract 1.6).
//!
//! A stream is one task that reads the events and fills a small queue, which HTTP empties. A reader that takes nothing
//! for too long is closed with a reason; it comes back with the id of the last event it saw. No other waits for it.

use super::super::forwarding::Lost;
use super::super::metrics::{ViewerCount, count_stalls};
use super::super::problem::Problem;
use super::super::settings::Shared;
use super::super::sse::Sse;
use super::event_cursor::{cursor_problem, read_event_cursor, write_event_cursor};
use super::event_source::{EventSource, Unread};
use super::frames::{Frames, Sink};
use super::render::Renderer;
use super::{SessionPath, find, numbers, query};
use crate::access::Needs;
use crate::identity::{ConnectionPermit, Identity};
use acpd_api::{EventsQuery, Scope};
use acpd_eventlog::Block;
use acpd_record::SessionId;
use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Events of a page, if nothing else is asked for.
const PAGE: u64 = 100;
/// Events of a page at most.
const LONGEST_PAGE: u64 = 1000;
/// A page ends with the event with which it reaches so many bytes.
const PAGE_BYTES: usize = 4 << 20;
/// Pieces on their way to one reader. With their size this bounds what a slow one costs.
const PIECES: usize = 2;
/// Bytes of events after which a stream looks whether it may go on.
const TAKEN: usize = 64 * 1024;
/// How long a stream goes on when the daemon stops: the ends of sessions are still told.
const LAST_EVENTS: Duration = Duration::from_millis(500);

/// `GET /v1/sessions/{id}/events`: everything that happened, and what happens.
///
/// `Accept` chooses the body of a 200. With `text/event-stream` in it: a stream that begins behind the cursor, follows the
/// session and ends with its run; each event of it has the number as `id`, the kind as `event` and one `Event` as
/// `data`, and `limit` has no meaning; 204 behind the last event of a session that has ended. With anything else, or without
/// `Accept`: one `EventsPage`. Of a session whose node is gone: what the fleet's archive has, and a stream ends there, with
/// `closed` and the reason `unreachable`. With an upgrade to a WebSocket the stream is carried by `event_socket.rs`.
pub(super) async fn events(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    lost: Option<Extension<Lost>>,
    SessionPath(id): SessionPath,
    asked: Result<Query<EventsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let has_ended = match lost {
        None => find(&shared, &identity, &id, Needs::resource(Scope::Observe)).await?.has_ended(),
        Some(_) => false,
    };
    let asked = query(asked)?;
    let last_seen = headers.get("last-event-id").map(|last| last.to_str().unwrap_or("?"));
    // Both are read, so that a mistake in the one that does not count is told too.
    let [last_seen, after] = [last_seen, asked.after.as_deref()]
        .map(|cursor| cursor.map(|cursor| read_event_cursor(cursor, &id)).transpose());
    let (after, last_seen) = (after?, last_seen?);
    let after = last_seen.or(after).unwrap_or(0);
    let limit = numbers("limit", asked.limit.as_deref(), 1..=LONGEST_PAGE)?.unwrap_or(PAGE);
    let source = match lost {
        Some(Extension(lost)) => EventSource::Archive(lost.events(&shared, after).await?.into()),
        None => {
            let cursor = shared.host.cursor(&id, after).await;
            EventSource::Log(cursor.map_err(|error| cursor_problem(&error, &id))?.into())
        }
    };
    if Sse::is_asked_for(&headers) {
        if has_ended && source.position() >= source.last() {
            // An `EventSource` comes again after any other answer, for ever (HTML, 9.2.3).
            return Ok((StatusCode::NO_CONTENT, [(header::CACHE_CONTROL, "no-store")]).into_response());
        }
        let permit = identity.connect().ok_or_else(super::too_many_connections)?;
        return Ok(stream(&shared, &identity, (id, source), permit));
    }
    page(&id, source, limit).await
}

async fn page(id: &SessionId, mut source: EventSource, limit: u64) -> Result<Response, Problem> {
    let (first, last) = (source.position(), source.last());
    let until = last.min(first.saturating_add(limit));
    let mut renderer = Renderer::default();
    let mut out = BytesMut::from("{\"events\":[");
    let mut reached = first;
    'page: while reached < until {
        let block = source.next(id).await.map_err(|unread| unread.problem(id))?;
        let Some(block) = block else { break };
        for event in block.events().take_while(|event| event.seq <= until) {
            if reached > first {
                out.put_u8(b',');
            }
            renderer.json(&event, &mut out);
            reached = event.seq;
            if out.len() >= PAGE_BYTES {
                break 'page;
            }
        }
    }
    out.put_u8(b']');
    if reached < last {
        out.put_slice(format!(",\"nextCursor\":\"{}\"", write_event_cursor(reached, id)).as_bytes());
    }
    out.put_u8(b'}');
    let json = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, json)], out.freeze()).into_response())
}

fn stream(
    shared: &Arc<Shared>,
    identity: &Identity,
    (id, mut source): (SessionId, EventSource),
    permit: ConnectionPermit,
) -> Response {
    source.begin_stream();
    let (pieces, queue) = mpsc::channel(PIECES);
    let outlet = Outlet { shared: Arc::clone(shared), revoked: identity.revoked().clone(), pieces };
    let follower = Follower { id, source, frames: Frames::default(), outlet };
    let counted = ViewerCount::new("sse");
    shared.host.scope().spawn("events", async move {
        follower.run().await;
        drop((permit, counted));
    });
    Sse::response(Body::from_stream(Pieces(queue)))
}

/// What HTTP takes from.
struct Pieces(mpsc::Receiver<Bytes>);

impl futures_util::Stream for Pieces {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|piece| piece.map(Ok))
    }
}

/// Follows a session's events for one reader.
struct Follower {
    id: SessionId,
    source: EventSource,
    frames: Frames,
    outlet: Outlet,
}

/// Where pieces go, unless the reader takes none for too long.
struct Outlet {
    shared: Arc<Shared>,
    /// Cancelled when the reader may not read any more.
    revoked: CancellationToken,
    pieces: mpsc::Sender<Bytes>,
}

/// Why a stream ends before its session does.
enum Closed {
    /// The reader is gone.
    Gone,
    Stalled,
    Shutdown,
    Revoked,
    /// The session was removed.
    Deleted,
    Unreadable(String),
    /// No more of them can be read here.
    Unreachable(String),
}

impl Follower {
    async fn run(mut self) {
        // The place for the last words, whatever else waits to be taken.
        let Ok(last) = self.outlet.pieces.clone().reserve_owned().await else { return };
        let closed = self.follow().await;
        let shared = &self.outlet.shared;
        let patience = shared.settings().viewer_stall;
        let words = match closed {
            // A reader that has seen the end needs no other.
            Ok(()) | Err(Closed::Gone) => return,
            Err(Closed::Stalled) => {
                count_stalls("sse", 1);
                Sse::closed("stalled", &format!("nothing was taken for {patience:?}"))
            }
            Err(Closed::Shutdown) => Sse::ended(shared.daemon.farewell.closing()),
            Err(Closed::Revoked) => Sse::closed("revoked", "the token is not known any more"),
            Err(Closed::Deleted) => Sse::closed("deleted", "the session was removed"),
            Err(Closed::Unreadable(why)) => Sse::closed("history_unreadable", &why),
            Err(Closed::Unreachable(why)) => Sse::closed("unreachable", &why),
        };
        let _sent = last.send(words);
    }

    async fn follow(&mut self) -> Result<(), Closed> {
        // Known to be open, though nothing may happen for long.
        self.outlet.take(Bytes::from_static(b": here\n\n")).await?;
        let Outlet { shared, revoked, pieces } = &self.outlet;
        let (stop, gone, revoked) = (shared.stop.clone(), pieces.clone(), revoked.clone());
        let mut until = None;
        loop {
            let wake = until.unwrap_or_else(|| Instant::now() + Sse::KEEPALIVE);
            let next = tokio::select! {
                // The events come last: of a session that is never silent there are always some.
                biased;
                () = revoked.cancelled() => return Err(Closed::Revoked),
                () = gone.closed() => return Err(Closed::Gone),
                () = stop.cancelled(), if until.is_none() => {
                    until = Some(Instant::now() + LAST_EVENTS);
                    continue;
                }
                () = tokio::time::sleep_until(wake) => {
                    if until.is_some() {
                        return Err(Closed::Shutdown);
                    }
                    self.outlet.take(Bytes::from_static(b": keepalive\n\n")).await?;
                    continue;
                }
                next = self.source.next(&self.id) => next,
            };
            match next {
                Ok(Some(block)) => self.write(block).await?,
                Ok(None) => return self.source.end().map_or(Ok(()), |why| Err(Closed::Unreachable(why))),
                Err(Unread::Deleted) => return Err(Closed::Deleted),
                Err(Unread::Problem(problem)) => return Err(Closed::Unreadable(problem.detail().to_owned())),
            }
        }
    }

    /// Writes a block and those that have come meanwhile.
    async fn write(&mut self, block: Block) -> Result<(), Closed> {
        let (mut next, mut taken) = (Some(block), 0);
        while let Some(block) = next {
            taken += block.bytes();
            self.frames.add(block, &self.source, &mut self.outlet).await?;
            next = if taken < TAKEN { self.source.try_next() } else { None };
        }
        match self.frames.rest() {
            Some(rest) => self.outlet.take(rest).await,
            None => Ok(()),
        }
    }
}

impl Sink for Outlet {
    type Closed = Closed;

    async fn take(&mut self, piece: Bytes) -> Result<(), Closed> {
        match self.pieces.try_send(piece) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(_)) => Err(Closed::Gone),
            // In a box: a stream that keeps up need not have the room for waiting.
            Err(TrySendError::Full(piece)) => Box::pin(self.wait_for_room(piece)).await,
        }
    }
}

impl Outlet {
    async fn wait_for_room(&self, piece: Bytes) -> Result<(), Closed> {
        let patience = self.shared.settings().viewer_stall;
        tokio::select! {
            sent = self.pieces.send(piece) => sent.map_err(|_| Closed::Gone),
            () = self.shared.pulse.run_out(Instant::now(), patience) => Err(Closed::Stalled),
            () = self.revoked.cancelled() => Err(Closed::Revoked),
            () = self.last_moment() => Err(Closed::Shutdown),
        }
    }

    /// When the daemon stops, nothing waits for a slow reader.
    async fn last_moment(&self) {
        self.shared.stop.cancelled().await;
        tokio::time::sleep(LAST_EVENTS).await;
    }
}
