//! The tokens that are known, as hashes; what a request presents is compared in constant time (contract 1.7).
//!
//! Can be replaced while requests come in; one that is taken out is revoked, and what it has open ends. A token itself
//! is never stored, logged or shown.

use super::secret::secret;
use crate::identity::Identity;
use acpd_host::now_ms;
use data_encoding::HEXLOWER;
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

/// The SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// How often it is looked for tokens whose time is over; requests are refused at once.
const EXPIRY_LOOK: Duration = Duration::from_secs(1);

/// How long the token of a browser is good: a day's work.
pub(super) const BROWSER_GOOD_FOR: Duration = Duration::from_secs(12 * 60 * 60);
/// Browsers that are let in at a time; with another one, what the first has open ends.
const BROWSERS: usize = 32;

/// The hash of a token, as it is stored.
pub fn hash_token(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// What tells a token from others in a fleet: half of a hash of its hash, by which neither can be found.
pub fn fingerprint(hash: &TokenHash) -> String {
    let mut digest = Sha256::new_with_prefix(b"acpd fleet");
    digest.update(hash);
    HEXLOWER.encode(&digest.finalize()[..16])
}

/// All that are known at one time.
#[derive(Clone)]
struct Known {
    bearers: Arc<[(TokenHash, Identity)]>,
    /// Browsers that the owner has let in, the first first. They are no reason to refuse callers without a token.
    browsers: Arc<[(TokenHash, Identity)]>,
    /// Every caller is admitted, until this is cancelled by the first token. It never comes back: taking tokens out
    /// is no way to open the door.
    open: Option<CancellationToken>,
}

impl Default for Known {
    fn default() -> Self {
        Self { bearers: Arc::default(), browsers: Arc::default(), open: Some(CancellationToken::new()) }
    }
}

/// The identity of each token.
#[derive(Clone, Default)]
pub struct Tokens(Arc<RwLock<Known>>);

impl Tokens {
    /// Knows these from now on, and no others. A token that stays what it was keeps what it has open.
    pub fn replace(&self, mut bearers: Vec<(TokenHash, Identity)>) {
        let mut known = self.0.write();
        for (hash, before) in known.bearers.iter() {
            let after = bearers.iter_mut().find(|(after, _)| after == hash);
            if let Some((_, after)) = &after
                && let Some(used_ms) = before.used_ms()
            {
                after.came(used_ms);
            }
            // What it had open has ended with its time; with a later one it begins anew.
            if before.revoked().is_cancelled() {
                continue;
            }
            if !after.is_some_and(|(_, after)| after.succeed(before)) {
                tracing::info!(
                    token = before.name().map(|name| &**name),
                    "token revoked, what it has open ends"
                );
                before.revoked().cancel();
            }
        }
        if let Some(open) = known.open.take_if(|_| !bearers.is_empty()) {
            open.cancel();
        }
        known.bearers = bearers.into();
    }

    /// Knows one more until its time is over, whatever else is known: its token.
    pub(super) fn admit(&self, browser: Identity) -> String {
        let token = secret::<32>();
        let mut known = self.0.write();
        let now = now_ms();
        let mut browsers: Vec<_> =
            known.browsers.iter().filter(|(_, browser)| !browser.has_expired(now)).cloned().collect();
        if browsers.len() == BROWSERS {
            browsers.remove(0).1.revoked().cancel();
        }
        browsers.push((hash_token(&token), browser));
        known.browsers = browsers.into();
        token
    }

    /// Whether there never was one, so that every caller is admitted: until this is cancelled.
    pub(super) fn open(&self) -> Option<CancellationToken> {
        self.known().open
    }

    /// Whether no caller is admitted, because the last one was taken out.
    pub fn admit_nobody(&self) -> bool {
        let known = self.known();
        known.open.is_none() && known.bearers.is_empty()
    }

    /// Ends what tokens have open from their time on. Never ends: the wall clock may be set, so that it is looked at.
    pub(super) async fn watch_expiries(&self) {
        loop {
            self.end_expired(now_ms());
            tokio::time::sleep(EXPIRY_LOOK).await;
        }
    }

    /// What tokens have open that are refused at this time ends.
    pub(super) fn end_expired(&self, now_ms: i64) {
        let known = self.known();
        for (_, identity) in known.bearers.iter().chain(known.browsers.iter()) {
            if identity.has_expired(now_ms) && !identity.revoked().is_cancelled() {
                tracing::info!(
                    token = identity.name().map(|name| &**name),
                    "token expired, what it has open ends"
                );
                identity.revoked().cancel();
            }
        }
    }

    /// All that are known.
    pub(super) fn bearers(&self) -> Vec<Identity> {
        self.known().bearers.iter().map(|(_, identity)| identity.clone()).collect()
    }

    /// When each token was last used, in milliseconds since 1970: by its name and the beginning of its hash, so that a new
    /// secret under the same name was never used.
    pub fn uses(&self) -> BTreeMap<String, i64> {
        let known = self.known();
        let uses =
            known.bearers.iter().filter_map(|(hash, bearer)| Some((key(hash, bearer), bearer.used_ms()?)));
        uses.collect()
    }

    /// Takes over what [`uses`](Self::uses) said in an earlier process.
    pub fn recall(&self, uses: &BTreeMap<String, i64>) {
        for (hash, bearer) in self.known().bearers.iter() {
            if let Some(used_ms) = uses.get(&key(hash, bearer)) {
                bearer.came(*used_ms);
            }
        }
    }

    /// Whose token this is. Takes as long for every token, known or not.
    pub(super) fn bearer(&self, token: &str) -> Option<Identity> {
        let presented = hash_token(token);
        let mut found = None;
        let known = self.known();
        for (hash, identity) in known.bearers.iter().chain(known.browsers.iter()) {
            if bool::from(hash.ct_eq(&presented)) {
                found = Some(identity.clone());
            }
        }
        found
    }

    fn known(&self) -> Known {
        self.0.read().clone()
    }
}

/// What a token is called where its last use is kept.
fn key(hash: &TokenHash, bearer: &Identity) -> String {
    let name = bearer.name().map(|name| &**name).unwrap_or_default();
    format!("{name} {}", HEXLOWER.encode(&hash[..4]))
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.known().bearers.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Allowance;
    use acpd_api::Scope;

    // SC-1: found by the hash, gone when it is taken away
    #[test]
    fn a_bearer_is_found_by_the_hash() {
        let tokens = Tokens::default();
        let open = tokens.open().expect("there is none");
        assert!(tokens.bearer("secret").is_none());
        let who = Identity::of_token("ci", Scope::Control, false, Allowance::UNLIMITED);
        tokens.replace(vec![(hash_token("secret"), who)]);
        let found = tokens.bearer("secret").and_then(|who| who.name().cloned());
        assert_eq!(found.as_deref(), Some("ci"));
        assert!(open.is_cancelled() && tokens.open().is_none());
        assert!(tokens.bearer("Secret").is_none() && tokens.bearer("").is_none());
        assert!(!format!("{tokens:?}").contains("secret"));
        assert!(!tokens.admit_nobody());
        tokens.replace(Vec::new());
        assert!(tokens.bearer("secret").is_none() && tokens.open().is_none() && tokens.admit_nobody());
    }

    // SC-1: who is taken away, or may do something else, is revoked; who stays is not
    #[test]
    fn who_is_known_no_more_is_revoked() {
        let tokens = Tokens::default();
        let bearer = |token: &str, scope| {
            (hash_token(token), Identity::of_token(token, scope, false, Allowance::UNLIMITED))
        };
        let three = ["stays", "changes", "goes"];
        tokens.replace(three.map(|token| bearer(token, Scope::Control)).into());
        let before = three.map(|token| tokens.bearer(token).expect("it is known"));
        tokens.replace(vec![bearer("changes", Scope::Observe), bearer("stays", Scope::Control)]);
        assert_eq!(before.map(|who| who.revoked().is_cancelled()), [false, true, true]);
        let after = ["stays", "changes"].map(|token| tokens.bearer(token).expect("it is known"));
        assert_eq!(after.map(|who| who.revoked().is_cancelled()), [false, false]);
    }

    // contract 7.2: a token is refused from its time on and what it has open ends; a later time lets it in again
    #[test]
    fn a_token_expires() {
        let tokens = Tokens::default();
        let bearer = |expires| {
            let who = Identity::of_token("ci", Scope::Control, false, Allowance::UNLIMITED);
            vec![(hash_token("secret"), who.expiring(expires))]
        };
        tokens.replace(bearer(Some(1_000)));
        let first = tokens.bearer("secret").expect("it is known");
        for (now, expired) in [(0, false), (999, false), (1_000, true), (2_000, true)] {
            tokens.end_expired(now);
            assert_eq!((first.has_expired(now), first.revoked().is_cancelled()), (expired, expired), "{now}");
        }
        tokens.replace(bearer(Some(3_000)));
        let again = tokens.bearer("secret").expect("it is known");
        tokens.end_expired(2_000);
        assert!(!again.has_expired(2_000) && !again.revoked().is_cancelled());
        tokens.replace(bearer(None));
        assert!(!again.revoked().is_cancelled(), "another time for the same token takes nothing from it");
        assert!(!tokens.bearer("secret").expect("it is known").has_expired(i64::MAX));
    }

    // contract 7.3: the last use stays with the secret, over reloads and restarts, and not with the name
    #[test]
    fn the_last_use_is_kept() {
        let (tokens, who) = (Tokens::default(), |name: &str| {
            Identity::of_token(name, Scope::Control, false, Allowance::UNLIMITED)
        });
        let both = || vec![(hash_token("a"), who("a")), (hash_token("b"), who("b"))];
        tokens.replace(both());
        tokens.bearer("a").expect("it is known").came(5);
        tokens.replace(both());
        let uses = tokens.uses();
        assert_eq!(uses.values().copied().collect::<Vec<_>>(), [5]);
        let restarted = Tokens::default();
        restarted.replace(both());
        restarted.recall(&uses);
        assert_eq!(restarted.bearer("a").and_then(|who| who.used_ms()), Some(5));
        assert_eq!(restarted.bearer("b").and_then(|who| who.used_ms()), None);
        restarted.replace(vec![(hash_token("new"), who("a"))]);
        assert!(restarted.uses().is_empty());
    }
}
