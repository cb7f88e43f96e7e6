//! Checkpoints of the fold over a session's log, so that a long log is not read from its beginning whenever its session is
//! activated or shown (ADR 0012).
//!
//! Disposable: a session without one, or with one that cannot be used, is the same a moment later. They are made where a fold
//! is at hand: at the end of a run, and behind a fold that took long. Invariant: what is kept is the fold over the log, so no
//! core whose events could not all be recorded has one.

use crate::chain::chain;
use acpd_eventlog::{Checkpoint, EventLog};
use acpd_record::{Projection, SessionId};

/// Events that are worth a checkpoint: reading them takes 2 ms, making a checkpoint of a few KiB a fiftieth of that
/// (docs/performance.md).
pub(crate) const LONG: u64 = 1000;

/// The largest checkpoint, in bytes: it is made where other sessions wait, and written in one piece. A session holds more than
/// that only in open questions and tool calls, which its end closes.
const LARGEST: usize = 1024 * 1024;

/// Keeps a checkpoint of a session whose events are committed up to the last that `projection` has seen. Short logs have none.
pub(crate) fn keep(log: &EventLog, session: &SessionId, projection: &Projection) {
    let seq = projection.last_seq();
    if seq < LONG {
        return;
    }
    match projection.to_checkpoint(session, LARGEST) {
        Some(bytes) => log.keep_checkpoint(session.as_str(), Checkpoint { seq, bytes }),
        None => {
            tracing::debug!(parent: None, %session, seq, "no checkpoint: it is too large, or cannot be written exactly")
        }
    }
}

/// What a session was at its checkpoint, if it has one at event `last` or before.
pub(crate) async fn find(log: &EventLog, session: &SessionId, last: u64) -> Option<Projection> {
    let Checkpoint { seq, bytes } = log
        .checkpoint(session.as_str(), last)
        .await
        .inspect_err(|error| tracing::debug!(parent: None, %session, error = chain(error), "a checkpoint cannot be read"))
        .ok()??;
    let projection = Projection::of_checkpoint(session, &bytes).filter(|found| found.last_seq() == seq);
    if projection.is_none() {
        tracing::debug!(parent: None, %session, seq, "a checkpoint is damaged or of another version, and is not used");
    }
    projection
}
