//! The handshake of a WebSocket (RFC 6455, 4.2), for everything that is served over one.
//!
//! Boundary: headers only. What is said on the socket, and for how long, is for those who open it.

use super::guard::BEARER_PROTOCOL;
use super::problem::Problem;
use acpd_api::ProblemKind;
use axum::body::Body;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use std::time::Duration;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// How long the client may take to speak the new protocol after it was agreed on.
pub(super) const UPGRADE: Duration = Duration::from_secs(10);

/// A request for a WebSocket whose headers are complete.
pub(super) struct Handshake {
    /// Done when the client speaks the new protocol.
    pub(super) upgrade: OnUpgrade,
    accept: HeaderValue,
    protocol: Option<HeaderValue>,
}

impl Handshake {
    /// Whether a request asks for a WebSocket.
    pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
        lists(headers, &header::UPGRADE, "websocket")
    }

    /// Takes the handshake out of a request. Fails with the problem that the client is to read.
    pub(super) fn read(head: &mut Parts) -> Result<Self, Problem> {
        let headers = &head.headers;
        if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version.as_bytes() != b"13") {
            let detail = "version 13 of the WebSocket protocol is served";
            return Err(Problem::new(StatusCode::UPGRADE_REQUIRED, ProblemKind::WebsocketVersion, detail)
                .with(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")));
        }
        let upgrade = head.extensions.remove::<OnUpgrade>();
        let (Some(key), Some(upgrade), true) =
            (headers.get(header::SEC_WEBSOCKET_KEY), upgrade, lists(headers, &header::CONNECTION, "upgrade"))
        else {
            return Err(Problem::bad_request("the headers of a WebSocket upgrade are not complete"));
        };
        let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).expect("it is base64");
        Ok(Self { upgrade, accept, protocol: protocol(headers) })
    }

    /// The answer that agrees to the new protocol, and what is done then.
    pub(super) fn agree(self) -> (Response, OnUpgrade) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let answer = response.headers_mut();
        answer.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        answer.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        answer.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept);
        answer.extend(self.protocol.map(|protocol| (header::SEC_WEBSOCKET_PROTOCOL, protocol)));
        (response, self.upgrade)
    }
}

/// Whether a header that is a list has a word in it.
fn lists(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(word))
}

/// One of the protocols that the client offers, or browsers give up; not the one with a token in it, if there is another.
fn protocol(headers: &HeaderMap) -> Option<HeaderValue> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    let offered = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let chosen = offered.map(str::trim).min_by_key(|offered| offered.starts_with(BEARER_PROTOCOL))?;
    HeaderValue::from_str(chosen).ok()
}
