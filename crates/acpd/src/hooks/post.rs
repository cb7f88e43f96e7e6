//! Tells a server: one POST, signed, in a connection of its own.
//!
//! What it answers is its status; a body is not read, and a redirect is a failure.

use super::spec::Secret;
use crate::address::Address;
use crate::config::HookUrl;
use crate::daemon::{connect, unreached};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::Scheme;
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use sha2::Sha256;

/// What is sent.
pub(super) struct Post<'a> {
    pub(super) url: &'a HookUrl,
    pub(super) secret: Option<&'a Secret>,
    /// The same for each try.
    pub(super) delivery: &'a str,
    /// Of this try, in seconds since 1970.
    pub(super) timestamp: i64,
    pub(super) body: Bytes,
}

/// Why a server was not told.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("it cannot be reached: {0}")]
    Connect(String),
    #[error("the connection broke")]
    Broken(#[from] hyper::Error),
    #[error("the connection was closed without an answer")]
    Closed,
    #[error("it answered {0}")]
    Refused(StatusCode),
}

/// Sends it. Bounded by the caller.
pub(super) async fn post(post: &Post<'_>) -> Result<(), PostError> {
    let uri = post.url.uri();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let tls = uri.scheme() == Some(&Scheme::HTTPS);
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let address = Address::Tcp { host, port, tls, base: String::new() };
    let stream = connect(&address, uri.host().unwrap_or_default(), None)
        .await
        .map_err(|error| PostError::Connect(unreached(error)))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let answer = sender.send_request(request(post, &address));
    tokio::pin!(connection, answer);
    let status = tokio::select! {
        biased;
        answer = &mut answer => answer?.status(),
        ended = &mut connection => {
            ended?;
            // The answer may have come with the end.
            tokio::select! {
                biased;
                answer = &mut answer => answer?.status(),
                () = std::future::ready(()) => return Err(PostError::Closed),
            }
        }
    };
    if status.is_success() { Ok(()) } else { Err(PostError::Refused(status)) }
}

fn request(post: &Post<'_>, address: &Address) -> Request<Full<Bytes>> {
    let path = post.url.uri().path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::post(path)
        .header(HOST, address.authority())
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("acpd/", env!("CARGO_PKG_VERSION")))
        .header("X-Acpd-Timestamp", post.timestamp)
        .header("X-Acpd-Delivery", post.delivery);
    if let Some(secret) = post.secret {
        let signature = signature(secret, post.timestamp, post.delivery, &post.body);
        request = request.header("X-Acpd-Signature", format!("sha256={signature}"));
    }
    request
        .body(Full::new(post.body.clone()))
        .expect("all headers are printable, and the URL was read before")
}

/// HMAC-SHA256 of `TIMESTAMP.DELIVERY.BODY`, hexadecimal.
fn signature(secret: &Secret, timestamp: i64, delivery: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("a key has any length");
    mac.update(format!("{timestamp}.{delivery}.").as_bytes());
    mac.update(body);
    HEXLOWER.encode(&mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.2: HMAC(secret, timestamp "." delivery "." body); computed by another program
    #[test]
    fn a_signature_is_what_others_compute() {
        let secret = Secret(b"key".to_vec());
        let expected = "039e5c5d2fe6e98904cca912071db730c1bd86b8db56563ad0db420d89d4b4f3";
        assert_eq!(signature(&secret, 1_700_000_000, "abc", b"{\"a\":1}"), expected);
    }
}
