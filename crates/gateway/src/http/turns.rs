//! Answers on their way through hyper, told to the [`Exchange`] of their socket.

use super::exchange::Exchange;
use super::sse::Sse;
use super::write_timeout::Turns;
use axum::body::Body as AxumBody;
use axum::response::Response;
use bytes::Bytes;
use http::{StatusCode, header};
use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The body of an answer.
pub(super) struct Answered {
    body: AxumBody,
    turns: Arc<Turns>,
}

/// The answer to a request goes out.
pub(super) fn answered(response: Response, turns: Arc<Turns>) -> http::Response<Answered> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        turns.update(Exchange::switched);
    } else if kind.is_some_and(|kind| kind.as_bytes().starts_with(Sse::KIND.as_bytes())) {
        turns.update(Exchange::streaming);
    }
    response.map(|body| Answered { body, turns })
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.turns.update(Exchange::answered);
    }
}

impl Body for Answered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
