//! The process of a daemon on this machine: the one that holds the lock of its state directory, or else the one that the
//! operating system names at the other end of its socket.

use super::error::DaemonError;
use super::request::Daemon;
use crate::address::Address;
use acpd_gateway::{connect_local, connect_socket, local_holder};
use rustix::process::Pid;

impl Daemon {
    /// Its process. None where it is reached over a network, or cannot be seen from here.
    pub(crate) async fn process(&self) -> Result<Option<Pid>, DaemonError> {
        let connected = match self.address() {
            Address::Tcp { .. } => return Ok(None),
            Address::Unix(path) => connect_socket(path).await,
            Address::Local(dir) => connect_local(dir).await,
        };
        let stream = connected.map_err(DaemonError::NotOurs)?;
        let state_dir = match self.address() {
            Address::Local(dir) => Some(dir.as_path()),
            Address::Unix(path) => path.parent(),
            Address::Tcp { .. } => None,
        };
        let holder = state_dir.and_then(local_holder).and_then(|holder| i32::try_from(holder).ok());
        // Of a socket that was passed in it is the service manager that listens on it. One in another container has no
        // number here.
        let peer = || stream.peer_cred().ok()?.pid().filter(|peer| *peer > 0 && !is_service_manager(*peer));
        Ok(holder.or_else(peer).and_then(Pid::from_raw))
    }
}

/// Whether it must not be taken for a daemon: to stop it would stop all that it manages.
fn is_service_manager(process: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.trim() == "systemd")
}
