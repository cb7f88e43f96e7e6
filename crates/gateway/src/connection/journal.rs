//! What an operator is told of a connection: its beginning and its end, what it is attached to, what it is refused.
//!
//! Not here: what a client says; a request that is refused is told by its method and its session. Invariant: a client
//! that is refused all the time writes no more than [`LINES`](crate::refusal_window::LINES) lines
//! per window, and none of them is long.

use crate::capabilities::ClientInfo;
use crate::connection::ConnectionOptions;
use crate::refusal_window::RefusalWindow;
use crate::wire_error::WireError;
use acpd_host::{ClientRef, SPANS};
use acpd_record::SessionId;
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Span;

/// Of what the client may choose as it likes, so many characters are told.
const CHARS: usize = 100;

/// What the lines of a connection belong to, in all of its tasks and viewers. The client's name is not among its fields,
/// which stay as they are: a client says it late, and may say another.
pub(super) fn span(client: &ClientRef, options: &ConnectionOptions) -> Span {
    let (connection, transport) = (&client.connection, options.transport);
    tracing::error_span!(target: SPANS, parent: None, "connection", %connection, transport)
}

/// One connection. All is written in its span.
#[derive(Debug)]
pub(super) struct ConnectionJournal {
    /// What it calls itself, if it has said so.
    client: Option<Box<str>>,
    token: Option<Arc<str>>,
    began: Instant,
    refusals: Refusals,
}

/// What a connection was refused.
#[derive(Debug)]
struct Refusals {
    /// Since it began.
    all: u64,
    /// Those that are not logged at info are logged at debug.
    window: RefusalWindow,
}

impl Refusals {
    fn new(now: Instant) -> Self {
        Self { all: 0, window: RefusalWindow::new(now) }
    }

    /// One more; whether it is told.
    fn see(&mut self, now: Instant) -> bool {
        self.all += 1;
        if self.window.is_over(now) {
            self.window = RefusalWindow::new(now);
        }
        self.window.count()
    }
}

impl ConnectionJournal {
    /// A client is there, and has not said its name yet.
    pub(super) fn opened(options: &ConnectionOptions) -> Self {
        let began = Instant::now();
        let journal = Self {
            client: None,
            token: options.identity.name().cloned(),
            began,
            refusals: Refusals::new(began),
        };
        tracing::info!(token = journal.token.as_deref(), agent = options.agent, "connection opened");
        journal
    }

    /// It is initialized, and may have said its name.
    pub(super) fn introduced(&mut self, info: &ClientInfo) {
        self.client = info.name.as_deref().map(beginning).map(Box::from);
        let version = info.version.as_deref().map(beginning);
        let client = self.client.as_deref();
        tracing::info!(client, version, "client initialized");
    }

    /// It follows a session, whose history ends with this event.
    pub(super) fn attached(&self, session: &SessionId, seq: u64) {
        let client = self.client.as_deref();
        tracing::info!(client, %session, seq, "client attached");
    }

    /// A request is not for it.
    pub(super) fn refused(&mut self, method: &str, session: Option<&str>, error: &WireError) {
        let WireError::Own { code, message, .. } = error else { return };
        let is_told = self.refusals.see(Instant::now());
        let token = self.token.as_deref();
        let (client, method, session) = (self.client.as_deref(), beginning(method), session.map(beginning));
        let reason = beginning(message);
        if is_told {
            tracing::info!(client, token, method, session, code, reason, "request refused");
        } else {
            tracing::debug!(client, token, method, session, code, reason, "request refused");
        }
    }

    /// It is over; `why` is what is known of that.
    pub(super) fn closed(&self, why: &'static str) {
        let duration_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (token, client) = (self.token.as_deref(), self.client.as_deref());
        let refused = self.refusals.all;
        tracing::info!(token, client, reason = why, refused, duration_ms, "connection closed");
    }
}

/// The first characters of a text.
fn beginning(text: &str) -> &str {
    text.char_indices().nth(CHARS).map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    // contract 6: a client that is refused all the time cannot fill the log, and what it is refused now and then is told
    #[test]
    fn refusals_are_told_up_to_a_limit_and_all_are_counted() {
        let start = Instant::now();
        let mut refusals = Refusals::new(start);
        let mut told = |seconds| refusals.see(start + Duration::from_secs(seconds));
        let first: Vec<bool> = [0, 1, 1, 1, 2, 3, 59].map(&mut told).into();
        assert_eq!(first, [true, true, true, true, true, false, false]);
        assert!((60..).step_by(20).take(20).all(told));
        assert_eq!(refusals.all, 27);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(beginning("session/new"), "session/new");
        assert_eq!(beginning(&"ä".repeat(1000)), "ä".repeat(CHARS));
    }
}
