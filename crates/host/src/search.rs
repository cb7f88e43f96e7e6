//! Search over what was said in sessions: prompts, answers and the titles of tool calls (issue 11, contract 7.3).
//!
//! The index has the turns in which the words stand; what is shown of one is read from its events. Not here: which words
//! there are, and how the index is kept (`acpd_eventlog`).

mod indexing;
mod snippet;
mod turns;

pub(crate) use indexing::keep_indexing;

use crate::chain::chain;
use crate::clock::iso8601;
use crate::error::HostError;
use crate::store::{self, SessionStore};
use acpd_api::SearchHit;
use acpd_eventlog::{Hit, Place, SearchQuery, SearchText};
use acpd_record::{SessionId, SessionMeta};
use snippet::snippet;
use std::time::Duration;
use turns::{Said, Turns};

/// What is read of a turn at most to show it, in bytes of its events. What was said behind that is not indexed, unless it
/// is short among long output of tools.
const READ_BYTES: usize = 8 * 1024 * 1024;

/// How long a search waits for turns that have ended to be indexed; one that does without them says so.
const PATIENCE: Duration = Duration::from_secs(1);

/// A turn that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The turn.
    pub hit: SearchHit,
    /// Its place in the order.
    pub place: Place,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The latest turn first.
    pub hits: Vec<Finding>,
    /// Sessions are not indexed yet, so there may be more.
    pub incomplete: bool,
}

impl SessionStore {
    /// A page of turns in which all the words stand. Writes nothing.
    pub(crate) async fn search(&self, query: SearchQuery) -> Result<Findings, HostError> {
        if !self.log.has_index() {
            return Err(HostError::SearchOff);
        }
        let text = query.text.clone();
        // What was said before is found, though it is indexed a moment later.
        let is_indexed = tokio::time::timeout(PATIENCE, self.unsearched.indexed()).await;
        let found = self.log.search(query).await.map_err(|error| store::unreadable(&error))?;
        let incomplete = self.log.unindexed(None, 1).await.map_err(|error| store::unreadable(&error))?;
        let mut hits = Vec::with_capacity(found.len());
        for hit in found {
            hits.push(self.describe(hit, &text).await);
        }
        Ok(Findings { hits, incomplete: !incomplete.is_empty() || !is_indexed.unwrap_or(false) })
    }

    async fn describe(&self, hit: Hit, text: &SearchText) -> Finding {
        let Hit { session, seq, at_ms, place } = hit;
        let said = match SessionId::parse(&session.id) {
            Some(id) => self.said_in(&id, seq).await,
            None => None,
        };
        let (part, snippet) = snippet(&said.unwrap_or_default(), text);
        let hit = SearchHit {
            title: SessionMeta::read(&session.info).title,
            session_id: session.id,
            agent: session.agent,
            cwd: session.cwd,
            seq,
            at: iso8601(at_ms),
            part,
            snippet,
        };
        Finding { hit, place }
    }

    /// What was said in the turn whose prompt is event `seq`. None when it cannot be read.
    async fn said_in(&self, id: &SessionId, seq: u64) -> Option<Said> {
        let _one_of_few = self.one_of_few().await;
        let read = async {
            let mut turns = Turns::new(seq - 1);
            let mut cursor = self.log.cursor(id.as_str(), seq - 1).await?;
            let (last, mut bytes) = (cursor.last(), 0);
            // Of a session that is live here, the cursor would wait for more.
            while cursor.position() < last && bytes < READ_BYTES {
                let Some(block) = cursor.next().await? else { break };
                bytes += block.bytes();
                for event in block.events() {
                    turns.see(&event);
                    if let Some(said) = turns.take().0.pop() {
                        return Ok(Some(said));
                    }
                }
            }
            turns.over(last);
            Ok::<_, HostError>(turns.take().0.pop())
        };
        read.await.unwrap_or_else(|error| {
            // It may have been deleted since it was found.
            tracing::debug!(parent: None, session = %id, seq, error = chain(&error), "a turn that was found cannot be read");
            None
        })
    }
}
