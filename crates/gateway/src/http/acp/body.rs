//! The body of a POST: bounded, and in time.

use super::super::problem::Problem;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt;
use std::time::Duration;

/// How long a client may take for the next piece.
const NEXT: Duration = Duration::from_secs(30);

/// Reads a body of at most `limit` bytes. What is longer is not read to its end.
pub(super) async fn read(mut body: Body, announced: Option<u64>, limit: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("a message has at most {limit} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    };
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    loop {
        let frame = tokio::time::timeout(NEXT, body.frame()).await.map_err(|_| {
            Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "the body did not come in time")
        })?;
        let frame = match frame {
            None => break,
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Err(Problem::bad_request(format!("the body broke off: {error}"))),
        };
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limit {
            return Err(too_large());
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}
