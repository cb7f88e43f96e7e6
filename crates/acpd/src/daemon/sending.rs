//! Requests with a body, and bodies in pieces.

use super::error::DaemonError;
use super::request::{ANSWER, Daemon};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// What is sent.
pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Nothing.
pub(super) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Daemon {
    /// Posts JSON, under a key if it is to be done once. What is done takes as long as it takes; the answer may be empty.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        key: Option<&str>,
        body: &impl Serialize,
    ) -> Result<T, DaemonError> {
        let body = serde_json::to_vec(body).map_err(|error| self.unreadable(&error))?;
        let mut headers = vec![
            (ACCEPT, HeaderValue::from_static("application/json")),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (CONTENT_LENGTH, HeaderValue::from(body.len())),
        ];
        let key = key.and_then(|key| HeaderValue::from_str(key).ok());
        headers.extend(key.map(|key| (IDEMPOTENCY_KEY, key)));
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
        let response = self.send_body(Method::POST, path, headers, body).await?;
        self.answer(response).await
    }

    /// Posts what comes in pieces.
    pub(crate) async fn upload<T: DeserializeOwned>(
        &self,
        path: &str,
        pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> Result<T, DaemonError> {
        let body = BodyExt::boxed_unsync(StreamBody::new(pieces.map(|piece| piece.map(Frame::data))));
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"))];
        let response = self.send_body(Method::POST, path, headers, body).await?;
        self.answer(response).await
    }

    /// Asks for what comes in pieces.
    pub(crate) async fn download(&self, path: &str) -> Result<Download, DaemonError> {
        let response = self.open(path, []).await?;
        Ok(Download { daemon: self.clone(), body: response.into_body() })
    }

    async fn answer<T: DeserializeOwned>(&self, response: Response<Incoming>) -> Result<T, DaemonError> {
        let body = self.read(response, ANSWER).await?;
        // What is only done answers nothing.
        let body = if body.is_empty() { Bytes::from_static(b"null") } else { body };
        acpd_wire::read(&body).map_err(|error| self.unreadable(&error))
    }
}

/// An answer in pieces.
pub(crate) struct Download {
    daemon: Daemon,
    body: Incoming,
}

impl Download {
    /// The next piece; None behind the last. An answer that breaks off is an error.
    pub(crate) async fn next_piece(&mut self) -> Result<Option<Bytes>, DaemonError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| self.daemon.lost(error))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
