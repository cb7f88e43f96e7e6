//! Requests and answers on their way through hyper, told to the [`Exchange`] of their socket.

use super::exchange::Exchange;
use super::patient::Turns;
use super::sse::Sse;
use axum::body::Body as AxumBody;
use axum::response::Response;
use bytes::Bytes;
use http::{Request, StatusCode, header};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The body of a request.
pub(super) struct Asked {
    body: Incoming,
    turns: Arc<Turns>,
}

/// The body of an answer.
pub(super) struct Answered {
    body: AxumBody,
    turns: Arc<Turns>,
}

/// A request has come.
pub(super) fn asked(request: Request<Incoming>, turns: &Arc<Turns>) -> Request<Asked> {
    let has_body = !request.body().is_end_stream();
    turns.tell(|exchange| exchange.requested(has_body));
    request.map(|body| Asked { body, turns: Arc::clone(turns) })
}

/// Its answer goes out.
pub(super) fn answered(response: Response, turns: Arc<Turns>) -> http::Response<Answered> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        turns.tell(Exchange::switched);
    } else if kind.is_some_and(|kind| kind.as_bytes().starts_with(Sse::KIND.as_bytes())) {
        turns.tell(Exchange::streaming);
    }
    response.map(|body| Answered { body, turns })
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.turns.tell(Exchange::body_over);
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.turns.tell(Exchange::answered);
    }
}

impl Body for Asked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.turns.tell(Exchange::body_over);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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
