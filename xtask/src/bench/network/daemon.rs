//! A running `acpd serve`. Invariant: when it is dropped, its process has been reaped; its agents end with it.

use super::super::now;
use super::super::peer::{Peer, PeerError};
use super::super::program::Programs;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tempfile::TempDir;

pub(super) struct Daemon {
    pub(super) address: SocketAddr,
    /// From its start to its first line.
    pub(super) listened_after: Duration,
    peer: Peer,
    /// After the process.
    _state: TempDir,
}

impl Daemon {
    pub(super) fn start(programs: &Programs) -> Result<Self, PeerError> {
        let state = programs.state_dir()?;
        let command = programs.daemon(&state);
        let begun = now();
        let mut peer = Peer::start(command)?;
        peer.next_line()?;
        let listened_after = begun.elapsed();
        let line = String::from_utf8_lossy(peer.last_line()).into_owned();
        let address = line.strip_prefix("listening on http://").and_then(|address| address.parse().ok());
        let address = address.ok_or(PeerError::Unmeasured { what: "its address", line })?;
        Ok(Self { address, listened_after, peer, _state: state })
    }

    pub(super) fn connect(&self) -> Result<TcpStream, PeerError> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// What it has in memory for itself, in bytes: its anonymous pages, since those of files are shared and reclaimed.
    pub(super) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.peer.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or_default() * 1024
    }

    pub(super) fn stop(self) -> Result<(), PeerError> {
        self.peer.terminate().map(drop)
    }
}
