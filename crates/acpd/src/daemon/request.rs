//! Requests to a daemon over HTTP/1.1, each on a connection of its own.

use super::chosen::Setting;
use super::connect::connect;
use super::error::{DaemonError, Problem};
use super::sending::{Body, empty};
use crate::address::Address;
use crate::clean::line;
use crate::config::{Client, Wait};
use acpd_host::TaskScope;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a daemon may take to begin an answer that needs nothing but a look.
const LOOK: Duration = Duration::from_secs(30);
/// The longest answer that is read whole: a page of sessions or of events.
pub(super) const ANSWER: usize = 512 << 20;
/// The longest problem document; what is longer comes from no daemon.
const PROBLEM: usize = 64 << 10;

/// Longer than any process lives.
const FOR_EVER: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// What says who the caller is.
#[derive(Clone, Debug)]
struct Tokens {
    /// To the daemon itself.
    here: Option<HeaderValue>,
    /// To the other nodes of its fleet, to which it sends requests on.
    elsewhere: Option<HeaderValue>,
}

/// A daemon, and what it needs to know of its caller.
#[derive(Clone, Debug)]
pub(crate) struct Daemon {
    address: Address,
    /// The caller's tokens.
    tokens: Box<Tokens>,
    ca: Option<PathBuf>,
    /// What named it; None for the one of a state directory.
    setting: Option<Box<Setting>>,
    /// How long it is tried again when it was lost.
    reconnect: Wait,
    /// Something is to be changed there; whether that was asked for.
    changing: Option<Arc<AtomicBool>>,
    /// Connections are driven in it.
    scope: TaskScope,
}

/// The token for the node that has what is asked for, where that is another one.
const ELSEWHERE: HeaderName = HeaderName::from_static("acpd-authorization");

impl Daemon {
    /// A daemon at an address; `authorization` goes into every request.
    pub(crate) fn new(address: Address, authorization: Option<HeaderValue>, ca: Option<PathBuf>) -> Self {
        let reconnect = Client::default().reconnect;
        let scope = TaskScope::default();
        let tokens = Box::new(Tokens { here: authorization, elsewhere: None });
        Self { address, tokens, ca, setting: None, reconnect, changing: None, scope }
    }

    /// The same, with a token for other nodes of its fleet, to which it sends requests on.
    pub(super) fn with_token_elsewhere(mut self, elsewhere: Option<HeaderValue>) -> Self {
        self.tokens.elsewhere = elsewhere;
        self
    }

    /// The same, for a command that changes something: where it is not reached, errors say that nothing was done.
    pub(crate) fn for_a_change(self) -> Self {
        Self { changing: Some(Arc::default()), ..self }
    }

    /// Why it is not reached.
    fn unreached(&self, error: DaemonError) -> DaemonError {
        match &self.changing {
            Some(asked) if !asked.load(Ordering::Relaxed) && error.is_away() => {
                DaemonError::Undone { error: Box::new(error) }
            }
            _ => error,
        }
    }

    /// The same, with what named it.
    pub(super) fn named_by(self, setting: Setting) -> Self {
        Self { setting: Some(Box::new(setting)), ..self }
    }

    /// The same, tried again so long when it was lost.
    pub(crate) fn tried_for(self, reconnect: Wait) -> Self {
        Self { reconnect, ..self }
    }

    /// How long it is tried again when it was lost.
    pub(crate) fn reconnect(&self) -> Duration {
        self.reconnect.limit().unwrap_or(FOR_EVER)
    }

    /// What named it; None for the one of a state directory.
    pub(crate) fn setting(&self) -> Option<&Setting> {
        self.setting.as_deref()
    }

    /// Where it is, with what named it unless that was typed just now.
    fn place(&self) -> String {
        match self.setting() {
            None | Some(Setting::Flag) => self.address.to_string(),
            Some(setting) => format!("{} ({setting})", self.address),
        }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn scope(&self) -> &TaskScope {
        &self.scope
    }

    /// Asks for a look at something.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, DaemonError> {
        self.get_within(path, LOOK).await
    }

    /// The same with a bound of its own.
    pub(crate) async fn get_within<T: DeserializeOwned>(
        &self,
        path: &str,
        within: Duration,
    ) -> Result<T, DaemonError> {
        let asked = async {
            let headers = [(ACCEPT, HeaderValue::from_static("application/json"))];
            let response = self.send(Method::GET, path, headers).await?;
            self.read(response, ANSWER).await
        };
        let body = tokio::time::timeout(within, asked).await.map_err(|_| self.slow(within))??;
        acpd_wire::read(&body).map_err(|error| self.unreadable(&error))
    }

    /// Asks for something to be done that takes no longer than a look.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
    ) -> Result<T, DaemonError> {
        self.ask_within(method, path, LOOK).await
    }

    /// The same with a bound of its own.
    pub(crate) async fn ask_within<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        within: Duration,
    ) -> Result<T, DaemonError> {
        let asked = async {
            let response = self.send(method, path, [(CONTENT_LENGTH, HeaderValue::from_static("0"))]).await?;
            self.read(response, ANSWER).await
        };
        let body = tokio::time::timeout(within, asked).await.map_err(|_| self.slow(within))??;
        acpd_wire::read(&body).map_err(|error| self.unreadable(&error))
    }

    /// Asks for something to be done, which takes as long as it takes: the daemon bounds it.
    pub(crate) async fn act(&self, method: Method, path: &str) -> Result<(), DaemonError> {
        let response = self.send(method, path, [(CONTENT_LENGTH, HeaderValue::from_static("0"))]).await?;
        self.read(response, ANSWER).await.map(drop)
    }

    /// Sends a request and gives the answer as soon as it has begun; within a bound, for what follows takes its time.
    pub(super) async fn open<const N: usize>(
        &self,
        path: &str,
        headers: [(HeaderName, HeaderValue); N],
    ) -> Result<Response<Incoming>, DaemonError> {
        let sent = self.send(Method::GET, path, headers);
        tokio::time::timeout(LOOK, sent).await.map_err(|_| self.slow(LOOK))?
    }

    /// Sends a request; an answer that is no success is an error.
    async fn send<const N: usize>(
        &self,
        method: Method,
        path: &str,
        headers: [(HeaderName, HeaderValue); N],
    ) -> Result<Response<Incoming>, DaemonError> {
        self.send_body(method, path, headers.into(), empty()).await
    }

    /// The same with a body.
    pub(super) async fn send_body(
        &self,
        method: Method,
        path: &str,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Body,
    ) -> Result<Response<Incoming>, DaemonError> {
        let stream = connect(&self.address, &self.place(), self.ca.as_deref()).await;
        let stream = stream.map_err(|error| self.unreached(error))?;
        if let Some(asked) = self.changing.as_ref().filter(|_| method != Method::GET) {
            asked.store(true, Ordering::Relaxed);
        }
        let mut request = Request::builder()
            .method(method)
            .uri(self.address.path(path))
            .header(HOST, self.address.authority())
            .header(USER_AGENT, concat!("acpd/", env!("CARGO_PKG_VERSION")));
        let own = self.tokens.here.clone().map(|own| (AUTHORIZATION, own));
        let elsewhere = self.tokens.elsewhere.clone().map(|token| (ELSEWHERE, token));
        for (name, value) in headers.into_iter().chain(own).chain(elsewhere) {
            request = request.header(name, value);
        }
        let request = request.body(body).map_err(|error| self.unreadable(&error))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| self.lost(e))?;
        // It ends with the answer, or when that is not read any more.
        self.scope.spawn("connection to a daemon", async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "the connection to the daemon ended");
            }
        });
        let response = sender.send_request(request).await.map_err(|error| self.broken(error))?;
        let status = response.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        let read = tokio::time::timeout(LOOK, self.read(response, PROBLEM)).await;
        let body = read.ok().and_then(Result::ok).unwrap_or_default();
        let problem = Problem::read(status, &body, self.tokens.here.is_some());
        Err(DaemonError::Refused { problem })
    }

    pub(super) async fn read(
        &self,
        response: Response<Incoming>,
        limit: usize,
    ) -> Result<Bytes, DaemonError> {
        let body = Limited::new(response.into_body(), limit).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| self.lost(error))
    }

    fn slow(&self, within: Duration) -> DaemonError {
        DaemonError::Slow { at: self.place(), within }
    }

    /// Why a request got no answer.
    fn broken(&self, error: hyper::Error) -> DaemonError {
        match error.is_parse() {
            true => DaemonError::NotHttp { at: self.place(), source: error.into() },
            false => self.lost(error),
        }
    }

    pub(super) fn lost(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> DaemonError {
        DaemonError::Lost { at: self.place(), source: error.into() }
    }

    pub(super) fn unreadable(&self, detail: &dyn std::fmt::Display) -> DaemonError {
        let detail = line(&detail.to_string(), 200);
        DaemonError::Unreadable { at: self.place(), detail }
    }
}

/// The header of a token. None when no header can carry it.
pub(super) fn bearer(token: &str) -> Option<HeaderValue> {
    let token = token.trim();
    if token.is_empty() || token.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return None;
    }
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Reads a token from a file that has nothing else in it.
pub(super) fn token_in(file: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    // No token is longer; what is named by mistake may be.
    std::fs::File::open(file)?.take(64 << 10).read_to_string(&mut text).map(|_| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_host::chain;

    // contract 7.1: where no daemon is reached, a command that changes something says that nothing was done; not one that looks, and
    // not behind a request that was sent
    #[tokio::test]
    async fn what_was_not_asked_was_not_done() {
        let dir = tempfile::tempdir().expect("a directory");
        let daemon = || Daemon::new(Address::Local(dir.path().to_owned()), None, None);
        let told = async |daemon: &Daemon| {
            chain(&daemon.act(Method::POST, "/v1/reload").await.expect_err("there is none")).to_string()
        };
        assert!(told(&daemon()).await.starts_with("no daemon answers at "));
        let changing = daemon().for_a_change();
        let text = told(&changing).await;
        assert!(text.starts_with("nothing was done: no daemon answers at "), "{text}");
        assert_eq!(text.matches("No such file").count(), 1, "{text}");
        if let Some(asked) = &changing.changing {
            asked.store(true, Ordering::Relaxed);
        }
        assert!(told(&changing).await.starts_with("no daemon answers at "));
    }

    // contract 1.7: a token is in no text that is made for people
    #[test]
    fn a_token_is_not_shown() {
        let header = bearer("  top-secret\n").expect("a header carries it");
        assert_eq!(header.as_bytes(), b"Bearer top-secret");
        let address = Address::parse("http://h:1").expect("a URL");
        assert!(!format!("{:?}", Daemon::new(address, Some(header), None)).contains("secret"));
        for wrong in ["", " \n", "two words", "a\nb", "a\u{1b}b"] {
            assert_eq!(bearer(wrong), None, "{wrong:?}");
        }
    }
}
