//! The body of a POST: bounded, and in time.

use super::problem::Problem;
use super::pulse::Pulse;
use acpd_api::ProblemKind;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How long a client may take for the next piece.
const NEXT: Duration = Duration::from_secs(30);
/// How long it may take for all.
const WHOLE: Duration = Duration::from_secs(300);
/// KiB of all bodies that are being read at a time, beyond the first piece of each. Full: they wait, as long as for a
/// piece, then 503.
const ALL_KIB: usize = 256 * 1024;

/// Room for the bodies of all clients together.
#[derive(Debug)]
pub(crate) struct BodyBudget(Arc<Semaphore>);

impl Default for BodyBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL_KIB)))
    }
}

/// The kind of most bodies.
pub(super) const JSON: &str = "application/json";

/// Whether the body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    is_of_kind(headers, JSON)
}

fn is_of_kind(headers: &HeaderMap, kind: &str) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    given
        .and_then(|given| given.split(';').next())
        .is_some_and(|given| given.trim().eq_ignore_ascii_case(kind))
}

/// Whether a POST is sent as one of these kinds. Without a body and without a word of its kind it is, too: no form of a page
/// comes so.
pub(super) fn check_kind(headers: &HeaderMap, has_body: bool, kinds: &[&str]) -> Result<(), Problem> {
    let is_silent = !has_body && !headers.contains_key(header::CONTENT_TYPE);
    match is_silent || kinds.iter().any(|kind| is_of_kind(headers, kind)) {
        true => Ok(()),
        false => Err(not_json(&format!("the body is sent as {}", kinds.join(" or as ")))),
    }
}

/// The refusal of a body that is not.
pub(super) fn not_json(detail: &str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ProblemKind::UnsupportedMediaType, detail)
}

/// The length that a body is said to have.
pub(super) fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads a body of at most `limit` bytes. What is longer is not read to its end.
pub(super) async fn read(
    body: Body,
    announced: Option<u64>,
    limit: usize,
    (budget, pulse): (&BodyBudget, &Pulse),
) -> Result<Bytes, Problem> {
    tokio::select! {
        biased;
        read = read_whole(body, announced, limit, (budget, pulse)) => read,
        () = pulse.run_out(Instant::now(), WHOLE) => Err(late(LATE)),
    }
}

const LATE: &str = "the body did not come in time";

fn late(detail: &str) -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, ProblemKind::RequestTimeout, detail)
}

/// The next piece of a body, `None` at its end. `detail` is said of one that does not come in time.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped.
pub(super) async fn next_piece(
    body: &mut Body,
    pulse: &Pulse,
    detail: &str,
) -> Result<Option<Bytes>, Problem> {
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = pulse.run_out(Instant::now(), NEXT) => return Err(late(detail)),
        };
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => return Err(Problem::bad_request(format!("the body broke off: {error}"))),
        }
    }
}

async fn read_whole(
    mut body: Body,
    announced: Option<u64>,
    limit: usize,
    (budget, pulse): (&BodyBudget, &Pulse),
) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("a message has at most {limit} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, ProblemKind::TooLarge, detail)
    };
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    let mut taken = Vec::new();
    while let Some(data) = next_piece(&mut body, pulse, LATE).await? {
        if first.len() + rest.len() + data.len() > limit {
            return Err(too_large());
        }
        if first.is_empty() {
            first = data;
        } else {
            let kib = u32::try_from(data.len().div_ceil(1024)).unwrap_or(u32::MAX);
            let permit = tokio::time::timeout(NEXT, Arc::clone(&budget.0).acquire_many_owned(kib)).await;
            let full = |_| Problem::busy("too many large messages are on their way; send it again");
            taken.push(permit.map_err(full)?);
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use futures_util::{FutureExt, StreamExt, stream};
    use http::HeaderValue;
    use std::io;

    /// The pulse of a process that runs.
    fn pulse() -> Arc<Pulse> {
        let pulse = Arc::new(Pulse::new());
        let beat = Arc::clone(&pulse);
        acpd_host::TaskScope::default().spawn("pulse", async move { beat.keep().await });
        pulse
    }

    /// A body of these pieces, which goes on for ever or ends there.
    fn body(pieces: &[&'static str], ends: bool) -> Body {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
        let rest = stream::pending::<Result<Bytes, io::Error>>();
        match ends {
            true => Body::from_stream(stream::iter(pieces)),
            false => Body::from_stream(stream::iter(pieces).chain(rest)),
        }
    }

    fn status(read: Result<Bytes, Problem>) -> StatusCode {
        read.expect_err("it is refused").into_response().status()
    }

    // HT-2
    #[test]
    fn json_is_known_by_its_kind() {
        for (kind, json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/jsonp", false),
            ("text/plain", false),
        ] {
            assert_eq!(
                is_json(&HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))])),
                json,
                "{kind}"
            );
        }
    }

    // contract 1.7: a POST is JSON, or has no body and no kind; a form of a page always has one of its own
    #[test]
    fn no_form_is_taken() {
        let form = "application/x-www-form-urlencoded";
        for (kind, has_body, is_taken) in [
            (None, false, true),
            (None, true, false),
            (Some(JSON), true, true),
            (Some(JSON), false, true),
            (Some("text/plain"), false, false),
            (Some("text/plain"), true, false),
            (Some(form), false, false),
            (Some("multipart/form-data; boundary=x"), true, false),
        ] {
            let kind = kind.map(|kind| (header::CONTENT_TYPE, HeaderValue::from_static(kind)));
            let headers = HeaderMap::from_iter(kind);
            assert_eq!(check_kind(&headers, has_body, &[JSON]).is_ok(), is_taken, "{headers:?} {has_body}");
        }
        let lines =
            HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"))]);
        assert!(check_kind(&lines, true, &[JSON]).is_err());
        assert!(check_kind(&lines, true, &[JSON, "application/x-ndjson"]).is_ok());
    }

    // HT-12: all bodies together are bounded; one that finds no room waits, and is asked to come again
    #[tokio::test(start_paused = true)]
    async fn bodies_share_their_room() {
        let (budget, pulse) = (BodyBudget(Arc::new(Semaphore::new(2))), pulse());
        let mut first = Box::pin(read(body(&["{", "\"a\":", "1"], false), None, 100, (&budget, &pulse)));
        assert!(first.as_mut().now_or_never().is_none(), "it is not at its end");
        let whole = read(body(&["{}"], true), None, 100, (&budget, &pulse)).await;
        assert_eq!(&whole.expect("a body of one piece needs no room")[..], b"{}");
        let refused = read(body(&["{", "}"], true), None, 100, (&budget, &pulse))
            .await
            .map_err(IntoResponse::into_response);
        let refused = refused.expect_err("there is no room");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
        // The first has come no further meanwhile.
        assert_eq!(status(first.await), StatusCode::REQUEST_TIMEOUT);
        let whole = read(body(&["{", "}"], true), None, 100, (&budget, &pulse)).await;
        assert_eq!(&whole.expect("the first has left its room")[..], b"{}");
    }

    // HT-12: what is too long is refused by what it says of itself, or as soon as it is too long
    #[tokio::test(start_paused = true)]
    async fn a_body_has_a_length() {
        let (budget, pulse) = (BodyBudget::default(), pulse());
        assert_eq!(
            status(read(body(&[], false), Some(6), 5, (&budget, &pulse)).await),
            StatusCode::PAYLOAD_TOO_LARGE
        );
        let long = body(&["123", "456"], false);
        assert_eq!(status(read(long, None, 5, (&budget, &pulse)).await), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(
            &read(body(&["123", "45"], true), Some(5), 5, (&budget, &pulse)).await.expect("it fits")[..],
            b"12345"
        );
    }
}
