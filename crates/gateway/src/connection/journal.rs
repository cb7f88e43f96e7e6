//! What an operator is told of a connection: its beginning and its end, what it is attached to, what it is refused.
//!
//! Not here: what a client says; a line that is refused is told by its method, and its session.

use crate::connection::ConnectionOptions;
use crate::wire_error::WireError;
use acpd_host::ClientRef;
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

/// One connection, as its lines name it.
#[derive(Debug)]
pub(super) struct ConnectionJournal {
    connection: Arc<str>,
    /// What it came by.
    transport: String,
    token: Option<Arc<str>>,
    began: Instant,
}

impl ConnectionJournal {
    /// A client is there, and has not said its name yet.
    pub(super) fn opened(client: &ClientRef, options: &ConnectionOptions) -> Self {
        let journal = Self {
            connection: Arc::clone(&client.connection),
            transport: options.client.clone(),
            token: options.identity.name().cloned(),
            began: Instant::now(),
        };
        let Self { connection, transport, token, .. } = &journal;
        tracing::info!(%connection, transport, token = token.as_deref(), agent = options.agent, "connection opened");
        journal
    }

    /// It has said its name.
    pub(super) fn introduced(&self, client: &str, params: &Value) {
        let (connection, version) = (&self.connection, params["clientInfo"]["version"].as_str());
        tracing::info!(%connection, client, version, "client initialized");
    }

    /// It follows a session, whose history ends with this event.
    pub(super) fn attached(&self, client: &str, session: &str, seq: u64) {
        tracing::info!(connection = %self.connection, client, %session, seq, "client attached");
    }

    /// A request is not for it.
    pub(super) fn refused(&self, client: &str, method: &str, session: Option<&str>, error: &WireError) {
        let WireError::Own { code, message, .. } = error else { return };
        let (connection, token) = (&self.connection, self.token.as_deref());
        tracing::info!(%connection, client, token, method, session, code, reason = message, "request refused");
    }

    /// It is over; `why` is what is known of that.
    pub(super) fn closed(&self, client: &str, why: &'static str) {
        let duration_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (connection, transport, token) = (&self.connection, &self.transport, self.token.as_deref());
        tracing::info!(%connection, transport, token, client, reason = why, duration_ms, "connection closed");
    }
}
