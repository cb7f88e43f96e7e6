//! The front end of a daemon: one client, whose connection to the daemon may be lost and found again without its noticing.
//!
//! Owned by a command, which gives a queue of lines for each direction. [`FrontCore`] decides what is passed on, what is
//! kept until it is answered, and what is asked again on a new link; [`carry`] has the sockets and the clock.
//! Invariants: the directions are independent, each bounded by its queue; each request of the client is answered once, and
//! each event of a session is told once and in order, over all links; a prompt and the creation of a session are sent
//! under a key, so that what is sent again is not done twice. Not here: what a message means beyond that.

mod away;
mod carrying;
mod core;
mod editing;
mod open;
mod questions;
mod sessions;

pub(crate) use carrying::{Carried, carry};
use std::fmt;

/// What is told of the connection to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// It was lost a while ago, for this reason, and is still tried again.
    Away(String),
    /// It is there again.
    Back,
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(why) => write!(f, "{why}; reconnecting"),
            Self::Back => f.write_str("connected to the daemon again"),
        }
    }
}
