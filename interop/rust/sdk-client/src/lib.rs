//! An ACP client on the official Rust SDK that runs scripts against acpd, or against an agent without acpd.
//!
//! [`talk`] starts a [`Peer`] over standard input and output, runs a script on the [`Conversation`] with it, ends
//! it by closing its input, and then looks for processes that were left behind. A [`Daemon`] is talked to over HTTP and
//! WebSocket, by several at a time.
//! Boundary: knows acpd only as a program; what acpd must do is said by the tests, not here.

mod conversation;
mod daemon;
mod peer;
mod processes;
mod talk;
mod trial;

pub use agent_client_protocol::{Error, ErrorCode, schema::ProtocolVersion, v1::schema};
pub use conversation::{Conversation, SessionEnded, Turn, message};
pub use daemon::{Daemon, Transport};
pub use peer::Peer;
pub use processes::Process;
pub use talk::{TalkError, talk};
