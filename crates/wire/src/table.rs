//! The open requests of one hop, in both directions: so that every request gets exactly one response.
//!
//! Owner: the task that owns the connection; one pair of tables for each connection, so ids never leak between hops.
//! Invariants: an id that is closed cannot be closed again; what is drained comes out oldest first.
//! Not here: the answers themselves, and time. The caller that closes or drains an entry answers it.

use std::collections::{BTreeMap, HashMap};

use thiserror::Error;

use crate::id::{OwnedId, RawId};

/// Requests that we sent and the peer has not answered.
#[derive(Debug)]
pub struct Outgoing<T> {
    next: u64,
    open: BTreeMap<u64, T>,
}

impl<T> Outgoing<T> {
    /// An empty table; ids count from 0.
    pub fn new() -> Self {
        Self { next: 0, open: BTreeMap::new() }
    }

    /// An empty table; ids count from `first`.
    pub fn starting_at(first: u64) -> Self {
        Self { next: first, open: BTreeMap::new() }
    }

    /// Puts in a request that is open under an id of an earlier table of this hop.
    pub fn reopen(&mut self, id: u64, entry: T) {
        self.next = self.next.max(id + 1);
        self.open.insert(id, entry);
    }

    /// Opens a request and gives it an id that was never used on this hop.
    pub fn open(&mut self, entry: T) -> u64 {
        let id = self.next;
        self.next += 1;
        self.open.insert(id, entry);
        id
    }

    /// Closes the request that a response names. `None` for an id that we never gave or that is closed already.
    pub fn close(&mut self, id: &RawId<'_>) -> Option<T> {
        self.abandon(id.as_u64()?)
    }

    /// Closes a request without a response: its writing failed or its time is over. A later response is then unknown.
    pub fn abandon(&mut self, id: u64) -> Option<T> {
        let entry = self.open.remove(&id);
        if self.open.is_empty() {
            // A map that was emptied keeps a node with room for many.
            self.open = BTreeMap::new();
        }
        entry
    }

    /// The entry of an open request.
    pub fn get(&self, id: u64) -> Option<&T> {
        self.open.get(&id)
    }

    /// The entry of an open request, to change it.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.open.get_mut(&id)
    }

    /// All open requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.open.iter().map(|(id, entry)| (*id, entry))
    }

    /// Closes all requests, oldest first: the peer is gone and will not answer. Ids go on counting.
    pub fn drain(&mut self) -> impl Iterator<Item = (u64, T)> + use<T> {
        std::mem::take(&mut self.open).into_iter()
    }

    /// How many requests are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no request is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl<T> Default for Outgoing<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The peer used an id for a second request while the first one is still open.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("request id {id} is already in use")]
pub struct DuplicateId {
    /// The id, as the peer wrote it.
    pub id: OwnedId,
}

/// Requests that the peer sent and we have not answered.
#[derive(Debug)]
pub struct Incoming<T> {
    /// Order of arrival of the next request.
    next: u64,
    open: HashMap<OwnedId, (u64, T)>,
}

impl<T> Incoming<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self { next: 0, open: HashMap::new() }
    }

    /// Opens a request under the peer's id.
    ///
    /// # Errors
    ///
    /// [`DuplicateId`] while a request with an equal id is open; that one stays as it is.
    pub fn open(&mut self, id: OwnedId, entry: T) -> Result<(), DuplicateId> {
        if self.open.contains_key(&id) {
            return Err(DuplicateId { id });
        }
        self.open.insert(id, (self.next, entry));
        self.next += 1;
        Ok(())
    }

    /// Closes a request: the caller owes the one response. `None` when it is closed already or was never open.
    pub fn close(&mut self, id: &OwnedId) -> Option<T> {
        self.open.remove(id).map(|(_, entry)| entry)
    }

    /// The entry of an open request.
    pub fn find(&self, id: &OwnedId) -> Option<&T> {
        self.open.get(id).map(|(_, entry)| entry)
    }

    /// The entry of an open request, to change it.
    pub fn find_mut(&mut self, id: &OwnedId) -> Option<&mut T> {
        self.open.get_mut(id).map(|(_, entry)| entry)
    }

    /// All open requests, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&OwnedId, &T)> {
        self.open.iter().map(|(id, (_, entry))| (id, entry))
    }

    /// Closes all requests, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = (OwnedId, T)> + use<T> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(_, (arrival, _))| *arrival);
        open.into_iter().map(|(id, (_, entry))| (id, entry))
    }

    /// How many requests are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no request is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl<T> Default for Incoming<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn id(text: &str) -> RawId<'_> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        RawId::new(raw).unwrap()
    }

    // FR-3: a response that comes twice, or to nothing, finds nothing
    #[test]
    fn a_response_closes_its_request_once() {
        let mut sent = Outgoing::new();
        let first = sent.open("first");
        let second = sent.open("second");
        assert_ne!(first, second);
        assert_eq!(sent.close(&id(&second.to_string())), Some("second"));
        assert_eq!(sent.close(&id(&second.to_string())), None);
        for unknown in ["99", "-1", "null", "0.5", "\"0\"", "1e300"] {
            assert_eq!(sent.close(&id(unknown)), None, "{unknown}");
        }
        assert_eq!(sent.len(), 1);
    }

    // FR-2: the number counts, not its spelling
    #[test]
    fn responses_match_by_value() {
        let mut sent = Outgoing::new();
        assert_eq!((sent.open('a'), sent.open('b')), (0, 1));
        assert_eq!(sent.close(&id("1.0")), Some('b'));
        assert_eq!(sent.close(&id("0e5")), Some('a'));
        assert!(sent.is_empty());
    }

    // FR-3: after the peer's death everything pending is answered, and no late response hits a new request
    #[test]
    fn drained_ids_are_never_given_again() {
        let mut sent = Outgoing::default();
        for entry in ["a", "b", "c"] {
            sent.open(entry);
        }
        assert_eq!(sent.abandon(1), Some("b"));
        assert_eq!(sent.drain().collect::<Vec<_>>(), [(0, "a"), (2, "c")]);
        assert_eq!(sent.open("d"), 3);
        assert_eq!(sent.close(&id("0")), None);
        *sent.get_mut(3).unwrap() = "e";
        assert_eq!(sent.get(3), Some(&"e"));
        assert_eq!(sent.iter().collect::<Vec<_>>(), [(3, &"e")]);
    }

    // FR-3: exactly one response for each request of the peer
    #[test]
    fn a_request_is_answered_once() {
        let mut received = Incoming::new();
        received.open(id("1").to_owned(), "number").unwrap();
        received.open(id("\"1\"").to_owned(), "string").unwrap();
        received.open(id("null").to_owned(), "null").unwrap();
        assert_eq!(received.find(&id("null").to_owned()), Some(&"null"));
        assert_eq!(received.close(&id("\"1\"").to_owned()), Some("string"));
        assert_eq!(received.close(&id("\"1\"").to_owned()), None);
        assert_eq!(received.len(), 2);
        // The id is free again once it is answered.
        received.open(id("\"1\"").to_owned(), "again").unwrap();
        *received.find_mut(&id("1").to_owned()).unwrap() = "changed";
        let drained: Vec<_> = received.drain().map(|(id, entry)| (id.to_string(), entry)).collect();
        let expected = [("1", "changed"), ("null", "null"), ("\"1\"", "again")];
        assert_eq!(drained, expected.map(|(id, entry)| (id.to_owned(), entry)));
        assert!(received.is_empty());
    }

    // FR-2: equal ids in flight cannot be told apart in their answers
    #[test]
    fn a_duplicate_is_refused_and_the_first_stays() {
        let mut received = Incoming::default();
        received.open(id("\"a\"").to_owned(), 1).unwrap();
        let duplicate = received.open(id(r#""\u0061""#).to_owned(), 2).unwrap_err();
        assert_eq!(duplicate.to_string(), r#"request id "\u0061" is already in use"#);
        assert_eq!(received.iter().map(|(_, entry)| *entry).collect::<Vec<_>>(), [1]);
    }
}
