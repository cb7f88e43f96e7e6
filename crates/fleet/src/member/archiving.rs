//! Adding the events of the own sessions to the archive.
//!
//! The log of the node is what waits to be added, and the archive says how far it is, so nothing is stored for it and no session
//! waits for it. One that is far behind takes turns with the others. What comes later is added in longer runs, so an engine that is
//! slow costs time, and no memory.

use super::{Local, Member};
use crate::archive::{GoesOn, Piece, Position, goes_on};
use crate::engine::EngineError;
use crate::published::Unfiled;
use acpd_record::SessionId;
use futures_util::{StreamExt, stream};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a node looks what is to be added.
const PACE: Duration = Duration::from_millis(250);
/// Sessions that are added to at a time.
const AT_ONCE: usize = 16;
/// Runs of one session before the next has its turn.
const TURN: usize = 8;

impl Member {
    /// Adds what comes of the own sessions.
    pub(super) async fn archive(&self, local: &dyn Local) -> ! {
        loop {
            tokio::time::sleep(PACE).await;
            let is_joining = self.shared.me.lock().record.incomplete;
            let unfiled = self.shared.published.lock().unfiled(self.now(), is_joining);
            let adding = stream::iter(unfiled).for_each_concurrent(AT_ONCE, |unfiled| async move {
                // Each would wait for an engine that does not answer.
                if self.is_stale() {
                    return;
                }
                if let Err(error) = self.add(local, &unfiled).await {
                    self.not_added(&unfiled.session, error);
                }
            });
            adding.await;
        }
    }

    /// What the engine does not take is passed over until it may take it; so is what fails again and again.
    fn not_added(&self, session: &SessionId, error: EngineError) {
        let (now, lease) = (self.now(), self.shared.lease);
        if let EngineError::Refused(reason) = error {
            self.shared.refused_pieces.fetch_add(1, Ordering::Relaxed);
            if self.shared.published.lock().refused_piece(session, now, lease.lease()) {
                tracing::warn!(%session, reason, "the archive does not take events of a session: without this node they cannot be read");
            }
        } else {
            self.shared.published.lock().doubt(session, now, lease.heartbeat());
            tracing::debug!(%session, %error, "the archive is behind");
        }
    }

    async fn add(&self, local: &dyn Local, unfiled: &Unfiled) -> Result<(), EngineError> {
        let Unfiled { session, claim, .. } = unfiled;
        let place = match unfiled.behind {
            Some(behind) => Some((behind, unfiled.after)),
            None => self.place_in_archive(unfiled).await?,
        };
        let Some((mut behind, mut after)) = place else { return Ok(()) };
        for _ in 0..TURN {
            self.shared.published.lock().filed(session, after, behind);
            let run = local.run(session, after).await.map_err(EngineError::Unavailable)?;
            let Some(run) = run else { break };
            for piece in Piece::of_run_within(*claim, &run, self.shared.engine.most_bytes()) {
                behind = self.shared.engine.append(session, &piece, behind).await?;
            }
            after = run.last;
        }
        self.shared.published.lock().filed(session, after, behind);
        Ok(())
    }

    /// Where the archive of a session goes on, and the last event in it; None where this node cannot go on with it.
    async fn place_in_archive(&self, unfiled: &Unfiled) -> Result<Option<(Position, u64)>, EngineError> {
        let Unfiled { session, claim, after, seq, .. } = unfiled;
        let engine = &self.shared.engine;
        let last = engine.last(session).await?;
        let last = last.as_ref().map(|(piece, at)| (piece, *at));
        let why = match goes_on(last, *claim, *after) {
            GoesOn::From { after, .. } if after > *seq => {
                format!(
                    "the archive has it up to event {after}, and this node up to {seq}: its log is an older copy"
                )
            }
            GoesOn::From { behind, after, opens: false } => return Ok(Some((behind, after))),
            GoesOn::From { behind, after, opens: true } => {
                let opening = Piece::opening(*claim, after);
                let opened = engine.append(session, &opening, behind).await?;
                return Ok(Some((opened, after)));
            }
            GoesOn::Behind(epoch) => match engine.session(session).await? {
                Some((found, revision)) if found.node_id != self.me().id => {
                    self.found(&found, revision);
                    return Ok(None);
                }
                _ => format!(
                    "the archive has it of a later claim, {}, which the directory does not know",
                    epoch.0
                ),
            },
        };
        tracing::warn!(%session, why, "nothing is added to the archive of this session");
        self.shared.published.lock().cannot_file(session, why);
        Ok(None)
    }
}
