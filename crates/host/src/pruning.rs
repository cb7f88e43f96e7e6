//! Removing ended sessions that are old, or of which there are too many (contract 7.1 to 7.3).
//!
//! Chosen from what the log says, then removed one by one, each only if it is still as it was seen: a session that is taken
//! up meanwhile stays. A process that dies on the way leaves the others as they were. Not here: when that is done, and how
//! the log gives room back.

mod choice;

pub use choice::Keep;

use crate::chain::chain;
use crate::clock::{iso8601, now_ms};
use crate::error::HostError;
use crate::host::Host;
use crate::journal;
use crate::metrics;
use crate::store::{self, SessionStore};
use acpd_api::Prunable;
use acpd_eventlog::{StoredSize, Unchanged};
use acpd_record::{SessionId, SessionMeta};
use choice::{Size, choose, too_old_before};

/// Sessions that are looked at together.
const LOOKED_AT: u32 = 100;

/// An ended session as it was seen.
struct Seen {
    session: Prunable,
    state: Unchanged,
}

impl Seen {
    fn new(found: StoredSize) -> Self {
        let StoredSize { session, bytes } = found;
        let state = Unchanged { last_seq: session.last_seq, updated_ms: session.updated_ms };
        let session = Prunable {
            title: SessionMeta::brief(&session.info).title.map(Into::into),
            session_id: session.id,
            agent: session.agent,
            cwd: session.cwd,
            updated_at: iso8601(session.updated_ms),
            bytes,
        };
        Self { session, state }
    }
}

impl SessionStore {
    /// The ended sessions that are not to be kept, the one that changed longest ago first.
    pub(crate) async fn prunable(&self, keep: Keep) -> Result<Vec<Prunable>, HostError> {
        Ok(self.to_prune(keep).await?.into_iter().map(|seen| seen.session).collect())
    }

    async fn to_prune(&self, keep: Keep) -> Result<Vec<Seen>, HostError> {
        let (mut sizes, mut sessions) = (Vec::new(), Vec::new());
        let now = now_ms();
        let by_size = self.takes_more(keep).await?;
        let keep = Keep { bytes: keep.bytes.filter(|_| by_size), ..keep };
        // Without a limit of bytes, those behind it need not be looked at.
        let until = if by_size { i64::MAX } else { too_old_before(keep, now).unwrap_or(i64::MIN) };
        let mut after = None;
        loop {
            let page = self.log.sizes(after.take(), LOOKED_AT).await;
            let page = page.map_err(|error| store::unreadable(&error))?;
            after = page.last().map(|last| (last.session.updated_ms, last.session.id.clone()));
            for found in page {
                let row = &found.session;
                let is_removable = row.ended && row.owner.is_none();
                sizes.push(Size { updated_ms: row.updated_ms, is_removable, bytes: found.bytes });
                // Of the others nothing else is needed.
                sessions.push(is_removable.then(|| Seen::new(found)));
            }
            if after.as_ref().is_none_or(|(updated_ms, _)| *updated_ms >= until) {
                break;
            }
        }
        Ok(choose(&sizes, keep, now).into_iter().filter_map(|place| sessions[place].take()).collect())
    }

    /// Whether it has to be looked what each session takes.
    async fn takes_more(&self, keep: Keep) -> Result<bool, HostError> {
        let Some(most) = keep.bytes else { return Ok(false) };
        Ok(self.log.used_bytes().await.map_err(|error| store::unreadable(&error))? > most)
    }
}

impl Host {
    /// The sessions that [`prune`](Self::prune) would remove now.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn prunable(&self, keep: Keep) -> Result<Vec<Prunable>, HostError> {
        self.shared.store.prunable(keep).await
    }

    /// Removes the ended sessions that are not to be kept, the one that changed longest ago first, and gives those that were
    /// removed. Neither one that is live, here or elsewhere, nor one that is being taken up. `client` asked for it.
    ///
    /// # Errors
    /// When the log cannot be read or written; what was removed before that is gone.
    pub async fn prune(&self, keep: Keep, client: &str) -> Result<Vec<Prunable>, HostError> {
        let mut removed = Vec::new();
        for seen in self.shared.store.to_prune(keep).await? {
            if self.remove(&seen, client).await? {
                removed.push(seen.session);
            }
        }
        if !removed.is_empty() {
            let bytes = removed.iter().map(|session| session.bytes).sum();
            journal::pruned(removed.len(), bytes, client);
        }
        Ok(removed)
    }

    /// False when it is not as it was seen any more.
    async fn remove(&self, Seen { session, state }: &Seen, client: &str) -> Result<bool, HostError> {
        let Some(id) = SessionId::parse(&session.session_id) else { return Ok(false) };
        let Some(_no_attempt) = self.shared.sessions.attempts.none(&id) else { return Ok(false) };
        let store = &self.shared.store;
        let removed = store.log.delete_ended(id.as_str(), store.host_file.id(), *state).await?;
        if removed {
            journal::session_deleted(&id, client);
            metrics::pruned(session.bytes);
        }
        Ok(removed)
    }

    /// Has the log give back what removed sessions took, and waits for that.
    pub async fn reclaim(&self) {
        if let Err(error) = self.shared.store.log.reclaim().await {
            tracing::warn!(error = chain(&error), "what removed sessions took is given back later");
        }
    }
}
