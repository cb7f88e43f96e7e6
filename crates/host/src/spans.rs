//! What the lines of a host's log belong to: spans, whose fields stand in every line that is written inside them
//! (docs/monitoring.md has the fields).
//!
//! A run has one, which lasts as long as it does, made before any line of it can be written: an agent process that serves
//! one session is started in the span of its run, which is told the session when that begins. What is done for a session
//! while it has no run stands in a span of its own. Invariants: at most one span inside another has a session, so that no
//! line names two; no span is made for each message. Not here: connections, which have theirs in the gateway.

use acpd_record::{RunNumber, SessionId};
use acpd_supervisor::SPANS;
use tracing::Span;
use tracing::field::{Empty, display};

/// What is done for a session that has no run: its creation, its activation, its fork. Inside the span of the caller.
pub fn of_session(session: &SessionId) -> Span {
    tracing::error_span!(target: SPANS, "session", %session)
}

/// A run, of which nothing is known yet. It is inside no other: a session outlives the connection that asked for it.
pub(crate) fn of_run() -> Span {
    tracing::error_span!(target: SPANS, parent: None, "run", session = Empty, run = Empty)
}

/// Says of which session a run is; once for each span.
pub(crate) fn name_run(span: &Span, session: &SessionId, run: RunNumber) {
    span.record("session", display(session));
    span.record("run", run.0);
}
