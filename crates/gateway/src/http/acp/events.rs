//! `GET /acp`: a stream of events, the connection's or a session's.

use super::super::metrics::ViewerCount;
use super::super::problem::Problem;
use super::super::sse::Sse;
use super::Acp;
use super::connections::unknown;
use super::headers::{self, LAST_EVENT, SESSION, connection_id};
use crate::identity::Identity;
use crate::outbox::{EventId, OpenRefused};
use acpd_api::ProblemKind;
use acpd_record::SessionId;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use std::convert::Infallible;

pub(super) async fn open(acp: &Acp, identity: &Identity, headers: &HeaderMap) -> Result<Response, Problem> {
    if !Sse::is_taken(headers) {
        let detail = "the answer is a stream of events: Accept must list text/event-stream";
        return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, ProblemKind::NotAcceptable, detail));
    }
    let connection = acp.connections.find(connection_id(headers)?, identity)?;
    let session = headers::id(headers, &SESSION)?;
    let unknown_session = |text| Problem::session_not_found(text);
    let session =
        session.map(|text| SessionId::parse(text).ok_or_else(|| unknown_session(text))).transpose()?;
    let seen = match headers.get(LAST_EVENT) {
        None => None,
        Some(value) => Some(value.to_str().ok().and_then(EventId::read).ok_or_else(unreadable)?),
    };
    // Before the stream is there, so that no removal comes between.
    let presence = session.as_ref().map(|session| acp.shared.host.presence(session));
    let mut opened = connection.streams.open(session.as_ref(), seen);
    // A client may come back to many sessions at once: only those that are not there are few.
    if opened.as_ref().is_err_and(|refused| *refused == OpenRefused::Unconfirmed)
        && let Some(session) = &session
        && acp.exists(session, identity).await
    {
        opened = connection.streams.open_known(session);
    }
    let mut reader = opened.map_err(|refused| problem(refused, session.as_ref()))?;
    if let Some(presence) = presence {
        reader = reader.while_there(presence);
    }
    let session = session.as_ref().map(SessionId::as_str);
    tracing::debug!(connection = connection.id(), session, "a stream of events is read");
    let reading = (reader, ViewerCount::new("acp_sse"));
    let events = futures_util::stream::unfold(reading, async |(mut reader, counted)| {
        let events = reader.next(Sse::KEEPALIVE).await?;
        Some((Ok::<_, Infallible>(events), (reader, counted)))
    });
    Ok(Sse::response(Body::from_stream(events)))
}

fn unreadable() -> Problem {
    let detail = "Last-Event-ID is not the id of an event of acpd's";
    Problem::new(StatusCode::BAD_REQUEST, ProblemKind::CursorUnreadable, detail)
}

fn problem(refused: OpenRefused, session: Option<&SessionId>) -> Problem {
    let conflict = |name, detail: &str| Problem::new(StatusCode::CONFLICT, name, detail);
    match refused {
        OpenRefused::Gone => unknown(),
        OpenRefused::Full => {
            let detail = "this connection has as many streams as it may have";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, ProblemKind::TooManyStreams, detail)
        }
        OpenRefused::Unconfirmed => Problem::session_not_found(session.map_or("", SessionId::as_str)),
        OpenRefused::Foreign => conflict(
            ProblemKind::CursorOfAnotherStream,
            "Last-Event-ID is of another stream; load the session again",
        ),
        OpenRefused::Future => {
            conflict(ProblemKind::CursorInTheFuture, "Last-Event-ID is of an event that has not been yet")
        }
        OpenRefused::Forgotten => conflict(
            ProblemKind::CursorTooOld,
            "some of what follows Last-Event-ID is not kept any more; load the session again",
        ),
    }
}
