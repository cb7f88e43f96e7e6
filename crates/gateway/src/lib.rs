//! The outside of acpd: transports, connections and what clients see.
//!
//! A transport turns bytes into lines and lines into bytes; a [`connection`](serve) speaks ACP as an agent: it
//! negotiates, finds the session a message is for, and passes it on. Every session a client is attached to has a
//! viewer, which follows the session's log and keeps answers in order with events.
//!
//! Invariant: what a client sees was recorded before; every request gets one answer; a slow client slows no
//! other. Boundary: knows clients and frames; decides nothing about sessions.

mod access;
mod agent_list;
mod capabilities;
mod connection;
mod farewell;
mod fleet;
mod forms;
mod http;
mod identity;
mod limits;
mod local_socket;
mod methods;
mod outbox;
mod owed;
mod paging;
mod questions;
mod refusal_window;
mod relay;
mod stdio;
mod viewer;
mod wanted;
mod wire_error;

pub use agent_list::{AgentSight, Seen, list_agents};
pub use connection::{Arrival, ConnectionIo, ConnectionOptions, LAST_EVENTS, serve};
pub use fleet::{Dial, Fleet, PeerStream};
pub use http::{
    Asked, EventRenderer, HttpServer, HttpSettings, Listener, Measurements, MeasurementsError, TlsError,
    TokenHash, Tokens, fingerprint, hash_token, tls_config,
};
pub use identity::{Allowance, ConnectionPermit, Identity};
pub use local_socket::{
    ConnectError, LocalSocket, LocalSocketError, PassedSocket, connect_local, connect_socket, local_holder,
    local_socket_path,
};
pub use outbox::{Outbox, outbox};
pub use stdio::{StdioLines, serve_stdio};
