//! One bucket of the directory: entries by key, each write behind the revision that it has to find.
//!
//! The layout is that of a key-value bucket of NATS, so that the operator's tools show it: a stream with one message for each
//! key, a removed key being a message that says so. What the server removes by its age leaves such a message too. Not here:
//! what an entry says.

use crate::key;
use crate::link::{Failed, Link, Which};
use acpd_fleet::{EngineError, Expected, Revision};
use async_nats::header::{HeaderMap, HeaderValue};
use bytes::Bytes;

/// What a tool of NATS puts on a message that removes a key.
const OPERATION: &str = "KV-Operation";
/// Why the server has put a message in the place of another one.
const MARKER: &str = "Nats-Marker-Reason";
/// The revision that was removed, so that a removal is known again.
const REMOVED: &str = "Acpd-Removed";
const TIME_TO_LIVE: &str = "Nats-TTL";
/// The time to live of an entry that stays, also in a bucket whose entries leave by their age.
const FOR_EVER: &str = "never";
/// How long the bucket says that a key was removed. Watches have long been told; one that was cut off is told everything.
const REMOVED_FOR: &str = "1h";

/// How often a write is tried again behind a removed entry, which may be forgotten between a look and the write.
const TRIES: usize = 3;

/// A bucket.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    link: Link,
    name: String,
    /// What its keys begin with, of those entries that stay; else nothing.
    lasting: &'static str,
}

/// What is at a key.
#[derive(Debug)]
pub(crate) enum Found {
    /// No entry.
    Nothing {
        /// The message that says so; 0: none.
        last: u64,
        /// The revision of the entry that a node removed.
        removed: Option<Revision>,
    },
    /// An entry.
    Entry(Bytes, Revision),
}

/// Whether a message says that there is no entry any more.
pub(crate) fn is_removal(headers: Option<&HeaderMap>) -> bool {
    headers.is_some_and(|headers| headers.get(OPERATION).is_some() || headers.get(MARKER).is_some())
}

impl Bucket {
    pub(crate) fn new(link: Link, prefix: &str, of: &str) -> Self {
        Self { link, name: format!("{prefix}_{of}"), lasting: "" }
    }

    /// Those of its entries that no age removes, whose keys begin with `lasting`: no encoded name has its dot.
    pub(crate) fn lasting(&self, lasting: &'static str) -> Self {
        Self { lasting, ..self.clone() }
    }

    /// The stream that it is.
    pub(crate) fn stream(&self) -> String {
        format!("KV_{}", self.name)
    }

    /// What the subjects of its keys begin with.
    pub(crate) fn root(&self) -> String {
        format!("$KV.{}.", self.name)
    }

    fn subject(&self, name: &str) -> String {
        self.root() + self.lasting + &key::encode(name)
    }

    /// # Cancel safety
    /// It only reads.
    pub(crate) async fn find(&self, name: &str) -> Result<Found, EngineError> {
        let which = Which::Last { last_by_subj: &self.subject(name) };
        let Some(stored) = self.link.message(&self.stream(), &which).await? else {
            return Ok(Found::Nothing { last: 0, removed: None });
        };
        if is_removal(Some(&stored.headers)) {
            let removed = stored.headers.get(REMOVED).and_then(|value| value.as_str().parse().ok());
            return Ok(Found::Nothing { last: stored.sequence, removed: removed.map(Revision) });
        }
        Ok(Found::Entry(stored.payload, Revision(stored.sequence)))
    }

    /// The number of the last message that the stream's leader has; 0: none.
    ///
    /// # Cancel safety
    /// It only reads.
    pub(crate) async fn last(&self) -> Result<u64, EngineError> {
        let which = Which::Last { last_by_subj: &format!("{}>", self.root()) };
        let last = self.link.message(&self.stream(), &which).await?;
        Ok(last.map_or(0, |stored| stored.sequence))
    }

    /// Writes an entry.
    ///
    /// # Cancel safety
    /// It may have been written.
    pub(crate) async fn write(
        &self,
        name: &str,
        value: Vec<u8>,
        expected: Expected,
    ) -> Result<Revision, EngineError> {
        let value = Bytes::from(value);
        let mut headers = HeaderMap::new();
        if !self.lasting.is_empty() {
            headers.insert(TIME_TO_LIVE, FOR_EVER);
        }
        let write = |behind| self.link.publish(self.subject(name), headers.clone(), value.clone(), behind);
        let mut behind = match expected {
            Expected::Nothing => 0,
            // The server takes 0 as "no entry".
            Expected::Unchanged(Revision(0)) => return Err(EngineError::Conflict),
            Expected::Unchanged(Revision(revision)) => revision,
        };
        for _ in 0..TRIES {
            match write(behind).await {
                Ok(ack) => return Ok(Revision(ack.sequence)),
                Err(failed) if failed.is_conflict() && expected == Expected::Nothing => {}
                Err(failed) => return Err(failed.into()),
            }
            behind = match self.find(name).await? {
                Found::Nothing { last, .. } => last,
                Found::Entry(..) => break,
            };
        }
        Err(EngineError::Conflict)
    }

    /// Removes an entry that has not changed since.
    ///
    /// # Cancel safety
    /// It may have been removed.
    pub(crate) async fn remove(&self, name: &str, expected: Revision) -> Result<(), EngineError> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, "DEL");
        headers.insert(REMOVED, HeaderValue::from(expected.0));
        headers.insert(TIME_TO_LIVE, REMOVED_FOR);
        match self.link.publish(self.subject(name), headers, Bytes::new(), expected.0).await {
            Ok(_) => Ok(()),
            Err(failed) if failed.is_conflict() => self.was_removed(name, expected, failed).await,
            Err(failed) => Err(failed.into()),
        }
    }

    /// A removal that is said again, because its outcome was not known, is none of another node's.
    async fn was_removed(&self, name: &str, expected: Revision, failed: Failed) -> Result<(), EngineError> {
        match self.find(name).await? {
            Found::Nothing { removed: Some(removed), .. } if removed == expected => Ok(()),
            _ => Err(failed.into()),
        }
    }
}
