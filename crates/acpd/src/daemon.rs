//! A daemon somewhere: its address, how to reach it, and what can be asked of it.
//!
//! Owned by the commands that talk to a daemon. Invariants: every wait for a daemon to take a connection or to begin
//! an answer is bounded; what is read of an answer is bounded; a token is in requests and nowhere else; nothing that
//! a daemon says reaches an error unfiltered. A connection serves one request, so that none is ever stale. Not here:
//! what the answers mean to a person.

mod chosen;
mod connect;
mod error;
mod events;
mod follow;
mod link;
mod listing;
mod locate;
mod nodes;
mod process;
mod pruning;
mod request;
pub(crate) mod retry;
mod search;
mod sending;
mod sessions;
mod sse;
mod tls;
mod version;

pub(crate) use chosen::Setting;
pub(crate) use connect::{Duplex, connect, secure, unreached};
pub(crate) use error::DaemonError;
#[cfg(test)]
pub(crate) use error::Problem;
pub(crate) use events::Event;
pub(crate) use follow::{Followed, Follower};
pub(crate) use link::{Frame, Heard, Link, Socket, Trouble, WsError, hear, lost};
pub(crate) use listing::{Listing, SessionFilter};
pub(crate) use locate::{
    Chosen, Looked, await_daemon, choose, find_daemon, look_for, need_daemon, need_daemon_to_change,
    no_daemon,
};
pub(crate) use nodes::{Node, Nodes};
pub(crate) use pruning::{Pruned, pruned};
pub(crate) use request::Daemon;
pub(crate) use search::{Hit, Hits};
pub(crate) use sending::Download;
pub(crate) use sessions::{End, FindError, ForkSetup, LastTurn, Prompted, Session, meant};
pub(crate) use version::difference;
