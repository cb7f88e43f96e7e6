//! The fence: a node that the engine has not heard for two thirds of a lease ends the sessions that others may take up, by its own
//! clock, before any other may do so; and lets them begin again once it has read that they are still its own.

use super::{Fence, Local, Member};
use crate::engine::EngineError;
use crate::lease::Standing;
use acpd_record::SessionId;
use futures_util::{StreamExt, stream};
use std::time::Duration;

/// How often a node looks how it stands.
const PACE: Duration = Duration::from_millis(100);
/// Entries that are read at a time.
const AT_ONCE: usize = 32;

impl Member {
    /// Raises the fence, and lowers it.
    pub(super) async fn fence(&self, local: &dyn Local) -> ! {
        let (mut fence, begun, mut was_whole) = (Fence::ForNew, self.now(), false);
        local.fence(fence);
        loop {
            let is_stale = self.is_stale();
            was_whole |= !is_stale;
            if is_stale && was_whole {
                self.shared.directory.write().stale_at = Some(self.now());
            }
            let is_over = fence != Fence::ForNew || self.now() - begun >= self.shared.lease.to_begin();
            if self.standing() == Standing::Fenced {
                if is_over && fence != Fence::ForAll {
                    let sessions = self.shared.published.lock().movable().len();
                    if sessions > 0 {
                        tracing::warn!(
                            sessions,
                            "the fleet has not heard of this node in time: sessions that others may take up end"
                        );
                    }
                    fence = Fence::ForAll;
                    local.fence(fence);
                }
            } else if fence != Fence::Down
                && self.shared.directory.read().is_told
                && self.owns_what_it_has().await
            {
                fence = Fence::Down;
                local.fence(fence);
            }
            let heard = self.shared.me.lock().heard;
            if let Some(heard) = heard.filter(|_| self.standing() != Standing::Fenced) {
                local.counts_until(self.shared.origin + heard + self.shared.lease.fenced_after());
            }
            tokio::time::sleep(PACE).await;
        }
    }

    /// Whether all sessions that others may take up are known to be this node's; those that are not have ended then.
    async fn owns_what_it_has(&self) -> bool {
        if !self.shared.published.lock().is_learned() {
            return false;
        }
        let movable = self.shared.published.lock().movable();
        let read = async |session: SessionId| {
            let found = self.shared.engine.session(&session).await?;
            if let Some((record, revision)) = found {
                self.found(&record, revision);
            }
            Ok::<(), EngineError>(())
        };
        let all = stream::iter(movable).map(read).buffer_unordered(AT_ONCE);
        let is_known = all.all(async |read| read.is_ok()).await;
        let has_others = !self.shared.published.lock().superseded().is_empty();
        is_known && !has_others && self.standing() != Standing::Fenced
    }

    /// Ends what other nodes have taken up, and sets it aside.
    pub(super) async fn supersede(&self, local: &dyn Local) -> ! {
        loop {
            let superseded = self.shared.published.lock().superseded();
            let ending = stream::iter(superseded).for_each_concurrent(AT_ONCE, |(session, by)| async move {
                match local.supersede(&session, &by).await {
                    Ok(()) => {
                        tracing::warn!(%session, %by, "another node has taken this session up");
                        self.shared.published.lock().forget(&session);
                    }
                    Err(reason) => {
                        tracing::warn!(%session, %by, reason, "a session that another node has taken up stays for now");
                        tokio::time::sleep(self.shared.lease.heartbeat()).await;
                    }
                }
            });
            ending.await;
            tokio::time::sleep(PACE).await;
        }
    }
}
