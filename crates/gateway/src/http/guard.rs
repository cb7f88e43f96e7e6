//! What every request has to pass before anything is done for it: Host and Origin, then the token (contract 1.7).
//!
//! Invariant: a request that does not pass costs no more than its head; its body is not read.

use super::Peer;
use super::journal::Caller;
use super::problem::Problem;
use super::settings::Shared;
use acpd_api::ProblemKind;
use acpd_host::{iso8601, now_ms};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use std::net::IpAddr;
use std::sync::Arc;

/// Refuses foreign names and foreign pages, by which a browser could be made to call (SC-2).
pub(super) async fn check_place(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied().unwrap_or(Peer::Unix);
    match is_at_home(&shared, peer, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn is_at_home(shared: &Shared, peer: Peer, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let settings = shared.settings();
    let foreign_host = || {
        Problem::new(
            StatusCode::FORBIDDEN,
            ProblemKind::ForeignHost,
            "acpd is not called that; add the name to allowed_hosts in [server] if it is meant",
        )
    };
    // HTTP/2 has it in the address of the request. If there is more than one name, they must be the same.
    let mut given = uri.authority().cloned();
    for host in headers.get_all(header::HOST) {
        let host: Authority =
            host.to_str().ok().and_then(|host| host.parse().ok()).ok_or_else(foreign_host)?;
        if given.as_ref().is_some_and(|given| *given != host) {
            return Err(foreign_host());
        }
        given = Some(host);
    }
    if let Peer::Tcp { local, .. } = peer {
        let host = given.as_ref().filter(|host| is_plain(host)).ok_or_else(foreign_host)?;
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        let is_allowed = settings.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
        if !is_own(name, local.ip()) && !is_allowed {
            return Err(foreign_host());
        }
    }
    let scheme = if matches!(peer, Peer::Tcp { tls: true, .. }) { "https" } else { "http" };
    let mut origins = headers.get_all(header::ORIGIN).into_iter();
    let is_own = |origin: &HeaderValue| {
        given.as_ref().is_some_and(|host| origin.as_bytes() == format!("{scheme}://{host}").as_bytes())
    };
    match origins.all(|origin| is_own(origin) || is_allowed_origin(&settings.allowed_origins, origin)) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::FORBIDDEN,
            ProblemKind::ForeignOrigin,
            "pages of that origin may not call; add it to allowed_origins in [server] if it is meant",
        )),
    }
}

/// Whether that is what a request reached: its address, or this machine's name for itself.
///
/// The port does not matter: a tunnel has one of its own, and no page has a name here that it has not with ours.
fn is_own(name: &str, local: IpAddr) -> bool {
    match name.parse::<IpAddr>() {
        // An address is no name that others could point here.
        Ok(address) => address == local || (address.is_loopback() && local.is_loopback()),
        Err(_) => name.eq_ignore_ascii_case("localhost") && local.to_canonical().is_loopback(),
    }
}

/// A name or an address, and perhaps the number of a port; no user's name, and nothing behind.
fn is_plain(host: &Authority) -> bool {
    match host.as_str().strip_prefix(host.host()).map(|rest| rest.strip_prefix(':')) {
        Some(Some(port)) => port.parse::<u16>().is_ok(),
        Some(None) => host.as_str() == host.host(),
        None => false,
    }
}

pub(super) fn is_allowed_origin(allowed: &[String], origin: &HeaderValue) -> bool {
    allowed.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes())
}

/// Identifies the caller; everything behind this has an [`Identity`](crate::Identity) in its extensions (SC-1).
pub(super) async fn check_token(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().copied().unwrap_or(Peer::Unix);
    let presented = presented(request.headers());
    let gave_nothing = matches!(presented, Presented::Nothing);
    let identity = match (presented, shared.tokens.open()) {
        (_, Some(_)) if peer == Peer::Unix => Some(shared.local()),
        (_, Some(until)) => Some(shared.local().until(until)),
        (Presented::Token(token), None) => shared.tokens.bearer(token),
        (Presented::Nothing, None) if peer == Peer::Unix => Some(shared.local()),
        (Presented::Nothing | Presented::Unreadable, None) => None,
    };
    let Some(identity) = identity else {
        super::metrics::count_refused_token();
        // What is not known is told in the same words, however much of it is right.
        let detail = match gave_nothing {
            true => "a token is required: Authorization: Bearer TOKEN",
            false => "what was given is no token that acpd knows; a new one is known after acpd reload",
        };
        return Problem::new(StatusCode::UNAUTHORIZED, ProblemKind::Unauthorized, detail)
            .with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            .into_response();
    };
    let now = now_ms();
    if identity.has_expired(now) {
        super::metrics::count_refused_token();
        let expired = identity.expires_ms().map(iso8601).unwrap_or_default();
        let remedy = if identity.name().is_some() { "token rotate" } else { "open" };
        let detail = format!("this token expired at {expired}; a new one is made by acpd {remedy}");
        return Problem::new(StatusCode::UNAUTHORIZED, ProblemKind::TokenExpired, detail)
            .with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            .into_response();
    }
    identity.came(now);
    if let Err(wait) = identity.request() {
        let seconds = HeaderValue::from(wait.as_secs().max(1));
        return Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            ProblemKind::TooManyRequests,
            "more requests than requests_per_second of this token allows",
        )
        .with(header::RETRY_AFTER, seconds)
        .into_response();
    }
    let caller = Caller(identity.name().cloned());
    request.extensions_mut().insert(identity);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(caller);
    response
}

/// How a request says who it is from.
enum Presented<'a> {
    Nothing,
    Token(&'a str),
    /// Something that is no bearer token, or several.
    Unreadable,
}

/// The token of `Authorization: Bearer TOKEN`, or for browsers, whose WebSockets can set no header, of the
/// subprotocol `acpd.bearer.TOKEN`.
fn presented(headers: &HeaderMap) -> Presented<'_> {
    let mut authorizations = headers.get_all(header::AUTHORIZATION).into_iter();
    if let Some(authorization) = authorizations.next() {
        let read = authorization.to_str().ok().and_then(|text| text.split_once(' '));
        return match read {
            Some((scheme, token))
                if scheme.eq_ignore_ascii_case("bearer") && authorizations.next().is_none() =>
            {
                Presented::Token(token.trim())
            }
            _ => Presented::Unreadable,
        };
    }
    token_in_protocol(headers).map_or(Presented::Nothing, Presented::Token)
}

/// The token among the subprotocols of a WebSocket.
pub(super) fn token_in_protocol(headers: &HeaderMap) -> Option<&str> {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    let mut offered = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    offered.find_map(|protocol| protocol.trim().strip_prefix(BEARER_PROTOCOL))
}

/// What the subprotocol that carries a token begins with.
pub(super) const BEARER_PROTOCOL: &str = "acpd.bearer.";

#[cfg(test)]
mod tests {
    use super::*;

    // SC-2: the address that a request reached, and loopback's name on loopback
    #[test]
    fn only_what_was_reached_is_its_own_name() {
        for (name, local, expected) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.9.9.9", "127.0.0.1", true),
            ("::1", "127.0.0.1", true),
            ("localhost", "127.0.0.1", true),
            ("LocalHost", "::1", true),
            ("localhost", "::ffff:127.0.0.1", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.2", "192.0.2.1", false),
            ("localhost", "192.0.2.1", false),
            ("127.0.0.1", "192.0.2.1", false),
            ("192.0.2.1", "127.0.0.1", false),
            ("acpd.test", "127.0.0.1", false),
        ] {
            let local = local.parse().expect("an address");
            assert_eq!(is_own(name, local), expected, "{name} {local}");
        }
    }
}
