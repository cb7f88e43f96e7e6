//! The way through a proxy, where the environment names one: `HTTPS_PROXY` or `ALL_PROXY`, but for what `NO_PROXY` has, in
//! upper or lower case, as curl reads them.
//!
//! Not here: what is said to the host behind it, over TLS, which the proxy does not see.

use super::fetch::FetchError;
use crate::address::Address;
use crate::daemon::{Duplex, connect, unreached};
use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How long a proxy may take for its answer: it connects meanwhile.
const ANSWER: Duration = Duration::from_secs(30);
/// Bytes of its answer.
const HEAD: usize = 16 * 1024;

/// A stream to the host of an address, through the proxy that is named for it; none when none is.
pub(super) async fn tunnel(uri: &Uri, authority: &str) -> Result<Option<Box<dyn Duplex>>, FetchError> {
    let Some(proxy) = Matcher::from_env().intercept(uri) else { return Ok(None) };
    let address = address(&proxy)?;
    let at = address.authority();
    let failed = |why: String| FetchError::Proxy { proxy: at.clone(), why };
    let mut stream = connect(&address, &at, None).await.map_err(|error| failed(unreached(error)))?;
    let auth = proxy.basic_auth().and_then(|auth| auth.to_str().ok());
    let auth = auth.map(|auth| format!("Proxy-Authorization: {auth}\r\n")).unwrap_or_default();
    let asked = async {
        let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{auth}\r\n");
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut head = Vec::new();
        // Byte by byte: what follows belongs to the host behind it.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == HEAD {
                return Err(io::Error::other("it answers without an end"));
            }
            head.push(stream.read_u8().await?);
        }
        Ok(head)
    };
    let head = tokio::time::timeout(ANSWER, asked).await;
    let head = head.map_err(|_| failed(format!("it does not answer for {} s", ANSWER.as_secs())))?;
    match status(&head.map_err(|error| failed(error.to_string()))?) {
        Some(200..300) => Ok(Some(stream)),
        Some(407) => {
            Err(failed("it wants a user and a password, as in http://USER:PASSWORD@HOST:PORT".to_owned()))
        }
        Some(status) => Err(failed(format!("it answered {status}"))),
        None => Err(failed("what answers is no proxy".to_owned())),
    }
}

/// Where it is. Its user and password are shown nowhere.
fn address(proxy: &Intercept) -> Result<Address, FetchError> {
    let uri = proxy.uri();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let (tls, port) = match uri.scheme_str() {
        Some("http") => (false, 80),
        Some("https") => (true, 443),
        other => {
            let why = format!(
                "it is one of {}, and acpd takes those of http and https",
                other.unwrap_or("no kind")
            );
            return Err(FetchError::Proxy { proxy: host, why });
        }
    };
    Ok(Address::Tcp { host, port: uri.port_u16().unwrap_or(port), tls, base: String::new() })
}

/// The status of an answer of HTTP.
fn status(head: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(head.split(|byte| *byte == b'\r').next()?).ok()?;
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 14: acpd's own requests go through a proxy, too
    #[test]
    fn a_proxy_is_found_as_other_programs_find_it() {
        let named = |all: &str, no: &str| Matcher::builder().all(all.to_owned()).no(no.to_owned()).build();
        let uri: Uri = "https://agents.example.org/x".parse().expect("an address");
        let at = |all: &str, no: &str| named(all, no).intercept(&uri).map(|proxy| address(&proxy));
        let shown = |all: &str| at(all, "").map(|at| at.expect("one of http").authority());
        assert_eq!(shown("http://user:secret@proxy.example:3128").as_deref(), Some("proxy.example:3128"));
        assert_eq!(shown("proxy.example:3128").as_deref(), Some("proxy.example:3128"));
        assert!(at("http://proxy.example:3128", "example.org").is_none(), "it is one without");
        let wrong = at("socks5://proxy.example:1080", "").expect("it is for it").map(|_| ());
        assert!(wrong.is_err_and(|error| error.to_string().contains("one of socks5")));
    }

    #[test]
    fn answers_are_read() {
        assert_eq!(status(b"HTTP/1.1 200 Connection established\r\n\r\n"), Some(200));
        assert_eq!(status(b"HTTP/1.0 407\r\n\r\n"), Some(407));
        assert_eq!(status(b"SSH-2.0-x\r\n\r\n"), None);
    }
}
