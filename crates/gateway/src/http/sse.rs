//! What all streams of events have in common: how they are asked for, their headers, their last words.

use super::accept;
use crate::outbox::{Closing, sse_event};
use acpd_record::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Serialize;
use std::time::Duration;

/// The form of an event stream.
pub(super) struct Sse;

impl Sse {
    /// Its media type.
    pub(super) const KIND: &str = "text/event-stream";
    /// How long a stream may be silent: then a comment is written, so that no proxy takes it for closed (HT-9).
    pub(super) const KEEPALIVE: Duration = Duration::from_secs(15);

    /// Whether the caller wants a stream, where JSON is the usual answer.
    pub(super) fn is_asked_for(headers: &HeaderMap) -> bool {
        accept::prefers(headers, Self::KIND, "application/json")
    }

    /// Whether the caller takes a stream, where there is nothing else. One that says nothing does not know of it.
    pub(super) fn is_taken(headers: &HeaderMap) -> bool {
        accept::accepts(headers, &[Self::KIND]) == Some(true)
    }

    /// A response that no proxy keeps or holds up (HT-9).
    pub(super) fn response(body: Body) -> Response {
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static(Self::KIND)),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        ];
        (headers, body).into_response()
    }

    /// Why the stream ends; without an id, so that a cursor stays where it was.
    pub(super) fn closed(reason: &str, detail: &str) -> Bytes {
        Self::last(&Closed { reason, detail, retry_ms: None })
    }

    /// The same where it goes on when the reader comes again.
    pub(super) fn closed_for_now(reason: &str, detail: &str) -> Bytes {
        Self::last(&Closed { reason, detail, retry_ms: Some(AGAIN_MS) })
    }

    /// The same when it ends with acpd.
    pub(super) fn ended(why: Closing) -> Bytes {
        let detail = match why {
            Closing::Handover => "the server is replaced by its next version; reconnect with Last-Event-ID",
            _ => "server shutting down; reconnect with Last-Event-ID after restart",
        };
        Self::last(&Closed { reason: why.reason(), detail, retry_ms: why.retry_ms() })
    }

    fn last(closed: &Closed<'_>) -> Bytes {
        let data = Json::new(closed);
        let mut out = BytesMut::new();
        sse_event(&mut out, None, Some("closed"), |out| out.put_slice(data.get().as_bytes()));
        out.freeze()
    }
}

/// After how long a reader comes again.
const AGAIN_MS: u32 = 250;

/// Why a stream ends.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Closed<'a> {
    reason: &'a str,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_ms: Option<u32>,
}
