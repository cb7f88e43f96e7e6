//! The tokens that are known, as hashes; what a request presents is compared in constant time (contract 1.7).
//!
//! Can be replaced while requests come in. A token itself is never stored, logged or shown.

use crate::identity::Identity;
use sha2::{Digest, Sha256};
use std::sync::{Arc, PoisonError, RwLock};
use subtle::ConstantTimeEq;

/// The SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// The hash of a token, as it is stored.
pub fn hash_token(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// All that are known at one time.
type Known = Arc<[(TokenHash, Identity)]>;

/// Who is known by which token.
#[derive(Clone, Default)]
pub struct Tokens(Arc<RwLock<Known>>);

impl Tokens {
    /// Knows these from now on, and no others.
    pub fn replace(&self, known: Vec<(TokenHash, Identity)>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known.into();
    }

    /// Whether there is none, so that whoever reaches acpd may call.
    pub fn is_empty(&self) -> bool {
        self.known().is_empty()
    }

    /// Whose token this is. Takes as long for every token, known or not.
    pub(super) fn bearer(&self, token: &str) -> Option<Identity> {
        let presented = hash_token(token);
        let mut found = None;
        for (hash, identity) in self.known().iter() {
            if bool::from(hash.ct_eq(&presented)) {
                found = Some(identity.clone());
            }
        }
        found
    }

    fn known(&self) -> Known {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.known().len())
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
        assert!(tokens.is_empty() && tokens.bearer("secret").is_none());
        let who = Identity::of_token("ci", Scope::Control, false, Allowance::UNLIMITED);
        tokens.replace(vec![(hash_token("secret"), who)]);
        let found = tokens.bearer("secret").and_then(|who| who.name().cloned());
        assert_eq!(found.as_deref(), Some("ci"));
        assert!(tokens.bearer("Secret").is_none() && tokens.bearer("").is_none());
        assert!(!format!("{tokens:?}").contains("secret"));
        tokens.replace(Vec::new());
        assert!(tokens.bearer("secret").is_none());
    }
}
