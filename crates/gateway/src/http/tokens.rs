//! The tokens that are known, as hashes; what a request presents is compared in constant time (contract 1.7).
//!
//! Can be replaced while requests come in; one that is taken out is revoked, and what it has open ends. A token itself
//! is never stored, logged or shown.

use crate::identity::Identity;
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

/// The SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// The hash of a token, as it is stored.
pub fn hash_token(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// All that are known at one time.
#[derive(Clone)]
struct Known {
    bearers: Arc<[(TokenHash, Identity)]>,
    /// Every caller is admitted, until this is cancelled by the first token. It never comes back: taking tokens out
    /// is no way to open the door.
    open: Option<CancellationToken>,
}

impl Default for Known {
    fn default() -> Self {
        Self { bearers: Arc::default(), open: Some(CancellationToken::new()) }
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

    /// Whether there never was one, so that every caller is admitted: until this is cancelled.
    pub(super) fn open(&self) -> Option<CancellationToken> {
        self.known().open
    }

    /// Whether no caller is admitted, because the last one was taken out.
    pub fn admit_nobody(&self) -> bool {
        let known = self.known();
        known.open.is_none() && known.bearers.is_empty()
    }

    /// Whose token this is. Takes as long for every token, known or not.
    pub(super) fn bearer(&self, token: &str) -> Option<Identity> {
        let presented = hash_token(token);
        let mut found = None;
        for (hash, identity) in self.known().bearers.iter() {
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

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.known().bearers.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Allowance, Scope};

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
}
