//! Sockets that this process was started with, as systemd's socket units have it (sd_listen_fds(3)): by a service manager, or by
//! the image of acpd before it, in the same process.
//!
//! Invariant: they are taken before there is a thread, once, and no program that acpd starts inherits them. Not here: what
//! is served on them.

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;

/// The names of sockets that acpd itself has made. Those of a service manager keep theirs over a hand-over.
pub(crate) const OWN_TCP: &str = "acpd.tcp";
pub(crate) const OWN_UNIX: &str = "acpd.unix";

/// The first descriptor that is passed.
pub(crate) const FIRST: i32 = 3;
/// Sockets that acpd may listen on beside those that it is passed.
const OWN: usize = 2;

/// What was passed in.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// With their names.
    pub(crate) tcp: Vec<(String, TcpListener)>,
    pub(crate) unix: Vec<(String, UnixListener)>,
    /// The places of those that the next image of this process is passed beside these. Nothing else of this process is ever
    /// there, so no thread can close what is put there.
    pub(crate) places: Vec<OwnedFd>,
}

/// Why acpd does not work with what was passed in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassedError {
    #[error("cannot keep places for sockets")]
    NoPlace(#[source] io::Error),
    #[error("what LISTEN_FDS says cannot be read")]
    Unreadable(#[source] io::Error),
    #[error(
        "the socket {name:?} that was passed in is not listened on, or is no stream: a socket unit for acpd has \
         ListenStream= and not Accept=yes"
    )]
    NoListener { name: String },
}

impl Passed {
    /// Whether an earlier image of this process has made some of it.
    pub(crate) fn is_of_this_process(&self) -> bool {
        let unix = self.unix.iter().map(|(name, _)| name);
        self.tcp
            .iter()
            .map(|(name, _)| name)
            .chain(unix)
            .any(|name| [OWN_TCP, OWN_UNIX].contains(&name.as_str()))
    }

    /// Takes them. None when there are none, or they are for another process.
    pub(crate) fn take() -> Result<Self, PassedError> {
        let named = sd_notify::listen_fds_with_names().map_err(PassedError::Unreadable)?;
        let names: Vec<String> = named.map(|(_, name)| name).collect();
        let places = places(names.len() + OWN).map_err(PassedError::NoPlace)?;
        let mut passed = Self { places, ..Self::default() };
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

/// Takes what is free of so many descriptors from the first on.
fn places(count: usize) -> io::Result<Vec<OwnedFd>> {
    let is_place = |number: i32| usize::try_from(number - FIRST).is_ok_and(|place| place < count);
    let mut places = Vec::new();
    loop {
        // The lowest that is free.
        let null = OwnedFd::from(File::open("/dev/null")?);
        if !is_place(null.as_raw_fd()) {
            return Ok(places);
        }
        places.push(null);
    }
}

fn listening(socket: impl AsFd, name: String) -> Result<String, PassedError> {
    match socket_acceptconn(socket) {
        Ok(true) => Ok(name),
        Ok(false) | Err(_) => Err(PassedError::NoListener { name }),
    }
}
