//! Sockets that this process was started with, by a service manager as systemd's socket units have it (sd_listen_fds(3)).
//!
//! Invariant: they are taken before there is a thread, once, and no program that acpd starts inherits them. Not here: what
//! is served on them.

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;

/// What was passed in.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// With their names.
    pub(crate) tcp: Vec<(String, TcpListener)>,
    pub(crate) unix: Vec<(String, UnixListener)>,
}

/// Why acpd does not work with what was passed in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassedError {
    #[error("what LISTEN_FDS says cannot be read")]
    Unreadable(#[source] io::Error),
    #[error(
        "the socket {name:?} that was passed in is not listened on, or is no stream: a socket unit for acpd has \
         ListenStream= and not Accept=yes"
    )]
    NoListener { name: String },
}

impl Passed {
    /// Takes them. None when there are none, or they are for another process.
    pub(crate) fn take() -> Result<Self, PassedError> {
        let named = sd_notify::listen_fds_with_names().map_err(PassedError::Unreadable)?;
        let names: Vec<String> = named.map(|(_, name)| name).collect();
        let mut passed = Self::default();
        if names.is_empty() {
            return Ok(passed);
        }
        // The variables go with this.
        let mut sockets = ListenFd::from_env();
        for (index, name) in names.into_iter().enumerate() {
            if let Ok(Some(listener)) = sockets.take_unix_listener(index) {
                passed.unix.push((listening(&listener, name)?, listener));
            } else if let Ok(Some(listener)) = sockets.take_tcp_listener(index) {
                passed.tcp.push((listening(&listener, name)?, listener));
            } else {
                return Err(PassedError::NoListener { name });
            }
        }
        Ok(passed)
    }
}

fn listening(socket: impl AsFd, name: String) -> Result<String, PassedError> {
    match socket_acceptconn(socket) {
        Ok(true) => Ok(name),
        Ok(false) | Err(_) => Err(PassedError::NoListener { name }),
    }
}
