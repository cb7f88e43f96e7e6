//! Agrees on a WebSocket with another node, for a client of this one.

use crate::fleet::FORWARDED_BY;
use crate::relay::FleetAccess;
use crate::relay::core::To;
use crate::relay::refusal::Loss;
use axum::body::Body;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The longest message: the longest line that can be configured, and what ids of acpd's add to it.
const MESSAGE: usize = (1 << 30) + (1 << 20);
/// Bytes of a refusal that are read.
const REFUSAL: usize = 64 * 1024;

/// A WebSocket to the node, on which nothing was said yet.
pub(super) async fn open(access: &FleetAccess, to: &To) -> Result<Socket, Loss> {
    let key = generate_key();
    let request =
        request(access, to, &key).ok_or_else(|| Loss::NoAnswer("its address is none".to_owned()))?;
    let sent = access.fleet.peers.send(&to.address, request).await;
    let mut answer = sent.map_err(|error| Loss::NoAnswer(error.reason))?;
    match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS => {}
        StatusCode::UNAUTHORIZED => return Err(Loss::Token { given: access.token.is_some() }),
        _ => return Err(Loss::Refused(detail(answer).await)),
    }
    let accepted = answer.headers().get(header::SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
    if accepted != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err(Loss::NoAnswer("no acpd is there".to_owned()));
    }
    let upgraded =
        hyper::upgrade::on(&mut answer).await.map_err(|error| Loss::NoAnswer(error.to_string()))?;
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
    Ok(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(config)).await)
}

fn request(access: &FleetAccess, to: &To, key: &str) -> Option<Request<Body>> {
    let agent = utf8_percent_encode(&to.agent, NON_ALPHANUMERIC);
    let path = if to.agent.is_empty() { "/acp".to_owned() } else { format!("/acp?agent={agent}") };
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = path.parse::<Uri>().ok()?;
    let headers: &mut HeaderMap = request.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::from_str(key).ok()?);
    headers.insert(FORWARDED_BY, HeaderValue::from_str(access.fleet.member.me().name.as_str()).ok()?);
    if let Some(token) = &access.token {
        headers.insert(header::AUTHORIZATION, token.clone());
    }
    Some(request)
}

/// Why the node refuses, in its own words.
async fn detail(answer: Response<Body>) -> String {
    #[derive(Deserialize)]
    struct Problem {
        detail: String,
    }
    let status = answer.status();
    let body = axum::body::to_bytes(answer.into_body(), REFUSAL).await.unwrap_or_default();
    match serde_json::from_slice::<Problem>(&body) {
        Ok(Problem { detail }) => detail.replace(['\n', '\r'], " "),
        Err(_) => status.to_string(),
    }
}
