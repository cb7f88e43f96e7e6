//! Fetches by https, within bounds: a few redirects, each to https, as many bytes as may come, and no silence for long.
//!
//! Certificates are held against those of the system, or of the file in `SSL_CERT_FILE`. Each request has a connection of its
//! own, through a proxy where the environment names one.

use super::proxy::tunnel;
use super::told::Told;
use crate::address::Address;
use crate::clean::line;
use crate::daemon::{connect, secure, unreached};
use acpd_catalog::{HttpsUrl, size};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use std::io;
use std::time::Duration;

/// How often it is sent elsewhere.
const REDIRECTS: usize = 5;
/// How long nothing may come.
const SILENCE: Duration = Duration::from_secs(60);
/// A registry's file is some hundred KiB.
const TEXT: u64 = 16 * 1024 * 1024;

/// Why something was not fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("{} is no address", line(.0, 200))]
    Address(String),
    #[error("{host} cannot be reached: {why}")]
    Unreached { host: String, why: String },
    #[error("the proxy {proxy} cannot be used: {why}")]
    Proxy { proxy: String, why: String },
    #[error("it was sent on to {}, which is not https", line(.0, 200))]
    NotHttps(String),
    #[error("it was sent on more than {REDIRECTS} times")]
    Redirects,
    #[error("{host} answered {status}")]
    Status { host: String, status: StatusCode },
    #[error("it has {}, more than the {} that are taken", size(*.announced), size(*.most))]
    Announced { announced: u64, most: u64 },
    #[error("it has more than the {} that are taken", size(*.0))]
    Large(u64),
    #[error("nothing came for {} s", SILENCE.as_secs())]
    Silent,
    #[error("it came in part: {0} of {1} bytes")]
    Short(u64, u64),
    #[error("the connection broke")]
    Broken(#[from] hyper::Error),
    #[error("it cannot be written")]
    Io(#[from] io::Error),
    #[error("it is not UTF-8")]
    NotText,
}

/// Fetches a text.
pub(crate) async fn fetch_text(url: &HttpsUrl, told: &Told) -> Result<String, FetchError> {
    let mut bytes = Vec::new();
    fetch(url, TEXT, told, &mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })
    .await?;
    String::from_utf8(bytes).map_err(|_| FetchError::NotText)
}

/// Gives each piece to `take`; how many bytes came.
pub(super) async fn fetch(
    url: &HttpsUrl,
    most: u64,
    told: &Told,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, FetchError> {
    let mut url = url.as_str().to_owned();
    for _ in 0..=REDIRECTS {
        match fetch_once(&url, most, told, take).await? {
            Came::All(bytes) => return Ok(bytes),
            Came::Elsewhere(place) => url = resolved(&url, &place)?,
        }
    }
    Err(FetchError::Redirects)
}

/// What came of a request.
enum Came {
    All(u64),
    Elsewhere(String),
}

async fn fetch_once(
    url: &str,
    most: u64,
    told: &Told,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<Came, FetchError> {
    let no_address = || FetchError::Address(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| no_address())?;
    let host = uri.host().ok_or_else(no_address)?.to_owned();
    let bare = host.trim_matches(['[', ']']).to_owned();
    let address =
        Address::Tcp { host: bare, port: uri.port_u16().unwrap_or(443), tls: true, base: String::new() };
    let stream = match tunnel(&uri, &address.authority()).await? {
        Some(tunnel) => secure(&address, &host, tunnel).await,
        None => connect(&address, &host, None).await,
    };
    let stream =
        stream.map_err(|error| FetchError::Unreached { host: host.clone(), why: unreached(error) })?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path)
        .header(HOST, address.authority())
        .header(ACCEPT, "*/*")
        .header(USER_AGENT, concat!("acpd/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(Bytes::new()))
        .map_err(|_| no_address())?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async move {
        let answer = tokio::time::timeout(SILENCE, sender.send_request(request)).await;
        let answer = answer.map_err(|_| FetchError::Silent)??;
        let status = answer.status();
        if status.is_redirection()
            && let Some(place) = text_of(answer.headers(), LOCATION)
        {
            return Ok(Came::Elsewhere(place.to_owned()));
        }
        if !status.is_success() {
            return Err(FetchError::Status { host, status });
        }
        let announced = text_of(answer.headers(), CONTENT_LENGTH).and_then(|length| length.parse().ok());
        if let Some(announced) = announced.filter(|announced| *announced > most) {
            return Err(FetchError::Announced { announced, most });
        }
        let mut body = answer.into_body();
        let mut done = 0;
        loop {
            let frame = tokio::time::timeout(SILENCE, body.frame()).await.map_err(|_| FetchError::Silent)?;
            let Some(frame) = frame else { break };
            let Ok(piece) = frame?.into_data() else { continue };
            done += u64::try_from(piece.len()).unwrap_or(u64::MAX);
            if done > most {
                return Err(FetchError::Large(most));
            }
            take(&piece)?;
            told.bytes("fetching", done, announced);
        }
        match announced {
            Some(announced) if announced != done => Err(FetchError::Short(done, announced)),
            _ => Ok(Came::All(done)),
        }
    };
    tokio::pin!(connection, exchange);
    let mut is_open = true;
    loop {
        tokio::select! {
            biased;
            came = &mut exchange => return came,
            // The rest of the answer may have come with the end; an error of it is the exchange's, too.
            _ended = &mut connection, if is_open => is_open = false,
        }
    }
}

fn text_of(headers: &HeaderMap, name: http::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Where an answer sends it.
fn resolved(from: &str, place: &str) -> Result<String, FetchError> {
    let rest = from.strip_prefix("https://").unwrap_or(from);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let to = if place.contains("://") {
        place.to_owned()
    } else if let Some(rest) = place.strip_prefix("//") {
        format!("https://{rest}")
    } else {
        let path = rest[authority.len()..].split(['?', '#']).next().unwrap_or_default();
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let place = if place.starts_with('/') { place.to_owned() } else { format!("{directory}/{place}") };
        let end = place.find(['?', '#']).unwrap_or(place.len());
        let (path, query) = place.split_at(end);
        format!("https://{authority}{}{query}", without_dots(path))
    };
    match HttpsUrl::try_from(to.clone()) {
        Ok(url) => Ok(url.as_str().split('#').next().unwrap_or_default().to_owned()),
        Err(_) => Err(FetchError::NotHttps(to)),
    }
}

/// A path without `.` and `..`, as RFC 3986 has it.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut all = path.split('/').skip(1).peekable();
    while let Some(part) = all.next() {
        let is_last = all.peek().is_none();
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
        if is_last && matches!(part, "." | "..") {
            parts.push("");
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 14: a few redirects, each https
    #[test]
    fn a_redirect_leads_to_https_only() {
        for (place, to) in [
            ("https://other.example/b?c#d", "https://other.example/b?c"),
            ("//other.example/b", "https://other.example/b"),
            ("/b", "https://h.example:1/b"),
            ("b", "https://h.example:1/a/b"),
            ("b?x=/../y", "https://h.example:1/a/b?x=/../y"),
            ("../b/./c", "https://h.example:1/b/c"),
            ("../../../b/..", "https://h.example:1/"),
        ] {
            assert_eq!(resolved("https://h.example:1/a/x?q=/y", place).expect(place), to);
        }
        assert_eq!(resolved("https://h.example", "b").expect("a place"), "https://h.example/b");
        for place in
            ["http://h.example/b", "ftp://h.example/b", "file:///etc/passwd", "https://user@h.example/"]
        {
            assert!(
                matches!(resolved("https://h.example/a", place), Err(FetchError::NotHttps(_))),
                "{place}"
            );
        }
    }
}
