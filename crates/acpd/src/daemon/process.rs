//! The process of a daemon on this machine, as the operating system names it at the other end of its socket.

use super::error::DaemonError;
use super::request::Daemon;
use crate::address::Address;
use acpd_gateway::{connect_local, connect_socket};
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
        // One in another container has no number here.
        let number = stream.peer_cred().ok().and_then(|peer| peer.pid());
        Ok(number.filter(|number| *number > 0).and_then(Pid::from_raw))
    }
}
