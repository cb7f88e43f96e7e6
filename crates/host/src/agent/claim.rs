//! The agent's session ids that are in use.
//!
//! An agent that gives one id twice on one process would mix two sessions of acpd's, which may be of two people. So each
//! id is claimed before anything is recorded of its session, and only a claim can be bound. Owned by the agent task.

use std::sync::{Arc, Weak};

/// An agent's session id, as JSON text, that no other session on its process has. Dropped before it is bound, it is free
/// again.
#[derive(Debug)]
pub(crate) struct Claim(Arc<str>);

impl Claim {
    pub(super) fn new(native: &str) -> Self {
        Self(native.into())
    }

    /// Knows the claim for as long as it is there.
    pub(super) fn known(&self) -> Weak<str> {
        Arc::downgrade(&self.0)
    }

    /// The id, once it is bound.
    pub(super) fn into_native(self) -> Arc<str> {
        self.0
    }
}

/// The claims of one process that are not bound yet.
#[derive(Debug, Default)]
pub(super) struct Claims(Vec<Weak<str>>);

impl Claims {
    /// Adds a claim unless its id is one of `bound`, or claimed already. Ids are the same when they say the same, however
    /// they are written.
    pub(super) fn add<'a>(&mut self, claim: Weak<str>, mut bound: impl Iterator<Item = &'a str>) -> bool {
        self.0.retain(|claim| claim.strong_count() > 0);
        let Some(native) = claim.upgrade() else { return false };
        let is_same = |other: &str| said(other) == said(&native);
        let taken =
            bound.any(is_same) || self.0.iter().filter_map(Weak::upgrade).any(|other| is_same(&other));
        if !taken {
            self.0.push(claim);
        }
        !taken
    }

    /// The claim was bound.
    pub(super) fn bound(&mut self, native: &Arc<str>) {
        self.0.retain(|claim| !std::ptr::addr_eq(claim.as_ptr(), Arc::as_ptr(native)));
    }
}

/// What a JSON text says; itself, if it is no string.
fn said(native: &str) -> String {
    serde_json::from_str(native).unwrap_or_else(|_| native.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // SE-2: an id belongs to one session at a time, however it is written
    #[test]
    fn an_id_is_claimed_once() {
        let mut claims = Claims::default();
        let first = Claim::new("\"a\"");
        assert!(claims.add(first.known(), std::iter::empty()));
        for again in ["\"a\"", "\"\\u0061\""] {
            let again = Claim::new(again);
            assert!(!claims.add(again.known(), std::iter::empty()), "{again:?}");
            assert!(!Claims::default().add(again.known(), ["\"a\""].into_iter()), "{again:?} is bound");
        }
        let other = Claim::new("\"b\"");
        assert!(claims.add(other.known(), ["\"c\""].into_iter()));
        // Given up, and bound: the task then knows it by its route.
        drop(first);
        let again = Claim::new("\"a\"");
        assert!(claims.add(again.known(), std::iter::empty()));
        let native = other.into_native();
        claims.bound(&native);
        let later = Claim::new("\"b\"");
        assert!(claims.add(later.known(), std::iter::empty()));
    }
}
