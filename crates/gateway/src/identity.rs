//! The caller: the name, the scope and the allowance of a token (contract 1.7).
//!
//! Made when tokens are loaded and shared by all requests of that token. It is not a session's own notion: the host
//! only keeps the name of the token that a session was created under.

use crate::http::{TokenHash, fingerprint};
use acpd_api::{Limits, Scope};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How much the bearer of one token may hold at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Live sessions created under the token.
    pub sessions: usize,
    /// ACP connections and event streams that are open.
    pub connections: usize,
    /// HTTP requests per second, as many at once; None for any number.
    pub requests_per_second: Option<NonZeroU32>,
}

impl Allowance {
    /// No limit.
    pub const UNLIMITED: Self =
        Self { sessions: usize::MAX, connections: usize::MAX, requests_per_second: None };
}

/// A caller. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Identity {
    known: Arc<Known>,
    /// Cancelled when the caller is not admitted any more.
    revoked: CancellationToken,
}

#[derive(Debug)]
struct Known {
    name: Option<Arc<str>>,
    scope: Scope,
    sees_all: bool,
    allowance: Allowance,
    /// What it may use with that scope; None for anything.
    limits: Option<Arc<Limits>>,
    /// What tells its token from others of the same name, in a fleet.
    fingerprint: Option<Arc<str>>,
    /// It is refused from then on: milliseconds since 1970.
    expires_ms: Option<i64>,
    /// When it last came: milliseconds since 1970, 0 before the first time.
    used_ms: Arc<AtomicI64>,
    connections: Arc<AtomicUsize>,
    /// Sessions that are about to be live.
    beginning: Arc<AtomicUsize>,
    requests: Option<Arc<DefaultDirectRateLimiter>>,
}

/// An open connection, counted until it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit(Arc<AtomicUsize>);

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A session that is about to be live, counted until it is, or until it is known that it will not be.
#[derive(Debug)]
pub(crate) struct SessionPermit(Arc<AtomicUsize>);

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Identity {
    /// A caller that needs no token: the owner of the Unix socket, and of a daemon that has no tokens.
    pub fn local(allowance: Allowance) -> Self {
        Self::new(None, Scope::Admin, true, allowance)
    }

    /// The bearer of a token.
    pub fn of_token(name: &str, scope: Scope, sees_all: bool, allowance: Allowance) -> Self {
        Self::new(Some(name.into()), scope, sees_all || scope == Scope::Admin, allowance)
    }

    fn new(name: Option<Arc<str>>, scope: Scope, sees_all: bool, allowance: Allowance) -> Self {
        let requests = requests(allowance);
        let known = Known {
            name,
            scope,
            sees_all,
            allowance,
            limits: None,
            fingerprint: None,
            expires_ms: None,
            used_ms: Arc::default(),
            connections: Arc::default(),
            beginning: Arc::default(),
            requests,
        };
        Self { known: Arc::new(known), revoked: CancellationToken::new() }
    }

    /// The same, refused from a moment on, in milliseconds since 1970.
    #[must_use]
    pub fn expiring(mut self, expires_ms: Option<i64>) -> Self {
        if let Some(known) = Arc::get_mut(&mut self.known) {
            known.expires_ms = expires_ms;
        }
        self
    }

    /// The same, limited in what it may use. An admin is not: it could lift its limits.
    #[must_use]
    pub fn limited(mut self, limits: Limits) -> Self {
        if let Some(known) = Arc::get_mut(&mut self.known)
            && known.scope != Scope::Admin
            && limits != Limits::default()
        {
            known.limits = Some(Arc::new(limits));
        }
        self
    }

    /// The same, with the hash of its token.
    #[must_use]
    pub fn of_hash(mut self, hash: &TokenHash) -> Self {
        if let Some(known) = Arc::get_mut(&mut self.known) {
            known.fingerprint = Some(fingerprint(hash).into());
        }
        self
    }

    /// What tells its token from others of the same name; None for a caller that needs none.
    pub(crate) fn fingerprint(&self) -> Option<&str> {
        self.known.fingerprint.as_deref()
    }

    /// What it may use; None for anything.
    pub(crate) fn limits(&self) -> Option<Arc<Limits>> {
        self.known.limits.clone()
    }

    /// Whether it may use an agent at all.
    pub(crate) fn may_use(&self, agent: &str) -> bool {
        let limits = self.known.limits.as_ref();
        self.may(Scope::Control) && limits.is_none_or(|limits| limits.allow_agent(agent))
    }

    /// From when on it is refused, in milliseconds since 1970.
    pub(crate) fn expires_ms(&self) -> Option<i64> {
        self.known.expires_ms
    }

    /// Whether it is refused at this time.
    pub(crate) fn has_expired(&self, now_ms: i64) -> bool {
        self.known.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }

    /// When it last came, in milliseconds since 1970.
    pub(crate) fn used_ms(&self) -> Option<i64> {
        Some(self.known.used_ms.load(Ordering::Relaxed)).filter(|used_ms| *used_ms > 0)
    }

    /// It came at this time.
    pub(crate) fn came(&self, now_ms: i64) {
        self.known.used_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    /// The same, until this is cancelled.
    pub(crate) fn until(self, revoked: CancellationToken) -> Self {
        Self { revoked, ..self }
    }

    /// Cancelled when the caller is not admitted any more: what it has open ends.
    pub(crate) fn revoked(&self) -> &CancellationToken {
        &self.revoked
    }

    /// Takes over what `before` has open, if it may do and see the same; false if it is another caller.
    pub(crate) fn succeed(&mut self, before: &Self) -> bool {
        let (new, old) = (&self.known, &before.known);
        let may = |known: &'_ Known| (known.name.clone(), known.scope, known.sees_all, known.limits.clone());
        if may(new) != may(old) {
            return false;
        }
        if (new.allowance, new.expires_ms) == (old.allowance, old.expires_ms) {
            *self = before.clone();
            return true;
        }
        let same_rate = new.allowance.requests_per_second == old.allowance.requests_per_second;
        let known = Known {
            name: new.name.clone(),
            scope: new.scope,
            sees_all: new.sees_all,
            allowance: new.allowance,
            limits: new.limits.clone(),
            fingerprint: new.fingerprint.clone(),
            expires_ms: new.expires_ms,
            used_ms: Arc::clone(&old.used_ms),
            connections: Arc::clone(&old.connections),
            beginning: Arc::clone(&old.beginning),
            requests: if same_rate { old.requests.clone() } else { new.requests.clone() },
        };
        *self = Self { known: Arc::new(known), revoked: before.revoked.clone() };
        true
    }

    /// The token's name; None for who needs none.
    pub fn name(&self) -> Option<&Arc<str>> {
        self.known.name.as_ref()
    }

    /// What it may do.
    pub fn scope(&self) -> Scope {
        self.known.scope
    }

    /// Whether its scope includes `scope`.
    pub fn may(&self, scope: Scope) -> bool {
        self.known.scope >= scope
    }

    /// For a list: the owner whose sessions exist for it; None for all.
    pub fn only_its_own(&self) -> Option<String> {
        self.known.name.as_deref().filter(|_| !self.known.sees_all).map(str::to_owned)
    }

    /// Whether all sessions exist for it.
    pub(crate) fn sees_all(&self) -> bool {
        self.known.sees_all
    }

    /// Whether a session exists for it, by the token that it was created under.
    pub fn sees(&self, created_by: Option<&str>) -> bool {
        self.known.sees_all || (created_by.is_some() && created_by == self.known.name.as_deref())
    }

    /// How many live sessions of its own it may have.
    pub fn sessions(&self) -> usize {
        self.known.allowance.sessions
    }

    /// Counts a session that is about to be live, beside those that are; None at the limit. `live` is asked afterwards:
    /// one that is counted here no more is live by then.
    pub(crate) fn begin_session(&self, live: impl FnOnce() -> usize) -> Option<SessionPermit> {
        let before = self.known.beginning.fetch_add(1, Ordering::SeqCst);
        let permit = SessionPermit(Arc::clone(&self.known.beginning));
        (before + live() < self.known.allowance.sessions).then_some(permit)
    }

    /// Counts a connection; None at the limit.
    pub fn connect(&self) -> Option<ConnectionPermit> {
        let open = &self.known.connections;
        let most = self.known.allowance.connections;
        let counted =
            open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| (open < most).then_some(open + 1));
        counted.is_ok().then(|| ConnectionPermit(Arc::clone(open)))
    }

    /// Counts a request; the error is how long to wait for the next one.
    ///
    /// # Errors
    /// When there were too many in the last second.
    pub fn request(&self) -> Result<(), Duration> {
        let Some(requests) = &self.known.requests else { return Ok(()) };
        requests.check().map_err(|early| {
            let now = governor::clock::Clock::now(&governor::clock::DefaultClock::default());
            early.wait_time_from(now)
        })
    }
}

fn requests(allowance: Allowance) -> Option<Arc<DefaultDirectRateLimiter>> {
    let rate = allowance.requests_per_second?;
    Some(Arc::new(RateLimiter::direct(Quota::per_second(rate))))
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.7: each scope includes the one before; own sessions, or all
    #[test]
    fn scopes_include_each_other_and_sessions_have_an_owner() {
        let ci = Identity::of_token("ci", Scope::Control, false, Allowance::UNLIMITED);
        assert!(ci.may(Scope::Observe) && ci.may(Scope::Control) && !ci.may(Scope::Admin));
        assert!(ci.sees(Some("ci")) && !ci.sees(Some("other")) && !ci.sees(None));
        let watcher = Identity::of_token("w", Scope::Observe, true, Allowance::UNLIMITED);
        assert!(watcher.sees(Some("ci")) && watcher.sees(None));
        let admin = Identity::of_token("root", Scope::Admin, false, Allowance::UNLIMITED);
        assert!(admin.sees(None) && Identity::local(Allowance::UNLIMITED).sees(Some("ci")));
    }

    // HT-12
    #[test]
    fn connections_and_requests_are_counted() {
        let allowance = Allowance { sessions: 1, connections: 1, requests_per_second: NonZeroU32::new(2) };
        let who = Identity::of_token("x", Scope::Observe, false, allowance);
        let first = who.connect();
        assert!(first.is_some() && who.clone().connect().is_none());
        drop(first);
        assert!(who.connect().is_some());
        assert!(who.request().is_ok() && who.request().is_ok());
        assert!(who.request().is_err_and(|wait| wait <= Duration::from_secs(1)));
    }

    // HT-12: those that begin at the same time count as well
    #[test]
    fn sessions_that_begin_are_counted() {
        let allowance = Allowance { sessions: 2, ..Allowance::UNLIMITED };
        let who = Identity::of_token("x", Scope::Control, false, allowance);
        let first = who.begin_session(|| 0);
        let second = who.begin_session(|| 0);
        assert!(first.is_some() && second.is_some() && who.begin_session(|| 0).is_none());
        drop((first, second));
        assert!(who.begin_session(|| 1).is_some() && who.begin_session(|| 2).is_none());
    }

    // HT-12: what is open stays counted when only limits change; another scope is another caller
    #[test]
    fn a_successor_goes_on_counting() {
        let allowance = |connections| Allowance { connections, ..Allowance::UNLIMITED };
        let before = Identity::of_token("x", Scope::Observe, false, allowance(1));
        let open = before.connect();
        for connections in [1, 2] {
            let mut after = Identity::of_token("x", Scope::Observe, false, allowance(connections));
            assert!(after.succeed(&before));
            assert_eq!(after.connect().is_some(), connections == 2);
            before.revoked().cancel();
            assert!(after.revoked().is_cancelled(), "they end together");
        }
        let mut other = Identity::of_token("x", Scope::Control, false, allowance(1));
        assert!(!other.succeed(&before) && other.connect().is_some());
        drop(open);
    }
}
