//! The body of a POST: bounded, and in time.

use super::super::problem::Problem;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a client may take for the next piece.
const NEXT: Duration = Duration::from_secs(30);
/// How long it may take for all.
const WHOLE: Duration = Duration::from_secs(300);
/// KiB of all bodies that are being read at a time, beyond the first piece of each. Full: they wait, as long as for a
/// piece, then 503.
const ALL_KIB: usize = 256 * 1024;

/// Room for the bodies of all clients together.
#[derive(Debug)]
pub(super) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL_KIB)))
    }
}

fn full() -> Problem {
    let detail = "too many large messages are on their way; send it again";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
        .with(header::RETRY_AFTER, HeaderValue::from_static("1"))
}

/// Reads a body of at most `limit` bytes. What is longer is not read to its end.
pub(super) async fn read(
    body: Body,
    announced: Option<u64>,
    limit: usize,
    room: &Room,
) -> Result<Bytes, Problem> {
    tokio::time::timeout(WHOLE, read_whole(body, announced, limit, room))
        .await
        .unwrap_or_else(|_| Err(late()))
}

fn late() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "the body did not come in time")
}

async fn read_whole(
    mut body: Body,
    announced: Option<u64>,
    limit: usize,
    room: &Room,
) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("a message has at most {limit} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    };
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    let mut taken = Vec::new();
    loop {
        let frame = tokio::time::timeout(NEXT, body.frame()).await.map_err(|_| late())?;
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
            let kib = u32::try_from(data.len().div_ceil(1024)).unwrap_or(u32::MAX);
            let place = tokio::time::timeout(NEXT, Arc::clone(&room.0).acquire_many_owned(kib)).await;
            taken.push(place.map_err(|_| full())?);
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
