//! Where clients come in: on the sockets that were passed in, else on those that the configuration names. A copy of each is
//! kept for the next image of this process.

use super::check_exposure;
use crate::config::Config;
use crate::exit::Failure;
use crate::passed::{OWN_TCP, OWN_UNIX, Passed};
use acpd_gateway::{Listener, LocalSocket, PassedSocket};
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use tokio::net::TcpListener;

/// What is listened on.
pub(super) struct Doors {
    pub(super) listeners: Vec<Listener>,
    /// The addresses over TCP, at least one.
    pub(super) addresses: Vec<SocketAddr>,
    /// Until the daemon has ended.
    pub(super) local: LocalSocket,
    /// What the next image is passed, by name. As long as it is here, clients wait where nothing accepts them.
    pub(super) copies: Vec<(String, OwnedFd)>,
    /// Where these go then.
    pub(super) places: Vec<OwnedFd>,
}

impl Doors {
    /// Opens them in a state directory that is there.
    pub(super) async fn open(
        passed: Passed,
        config: &Config,
        tls: Option<Arc<ServerConfig>>,
    ) -> Result<Self, Failure> {
        let unix = one_at_most(passed.unix)?;
        let mut copies = Vec::new();
        let name = unix.as_ref().map_or(OWN_UNIX, |(name, _)| name).to_owned();
        let is_ours = name == OWN_UNIX;
        // What was passed in stays in its place, and is served by its copy.
        let served = unix.as_ref().map(|(_, listener)| listener.try_clone()).transpose()?;
        let served = served.map(|listener| PassedSocket { listener, is_ours });
        let (local, served) = LocalSocket::listen(&config.storage.path, served)?;
        let kept = unix.map_or_else(|| copy(&served), |(_, listener)| Ok(listener.into()))?;
        copies.push((name, kept));
        // Behind the lock: the start of a second daemon is told of the first, not of its port.
        let tcp = match passed.tcp.is_empty() {
            true => {
                let listener = bind(config.server.listen).await?;
                vec![(OWN_TCP.to_owned(), copy(&listener)?, listener)]
            }
            false => passed.tcp.into_iter().map(taken).collect::<Result<_, _>>()?,
        };
        let (mut addresses, mut listeners) = (Vec::new(), vec![Listener::Unix(served)]);
        for (name, kept, listener) in tcp {
            let address = listener.local_addr()?;
            check_exposure(config, address).map_err(Failure::Usage)?;
            addresses.push(address);
            copies.push((name, kept));
            listeners.push(Listener::Tcp(listener, tls.clone()));
        }
        // Those that were passed in go to the places where they are.
        copies.sort_by_key(|(_, copy)| copy.as_raw_fd());
        Ok(Self { listeners, addresses, local, copies, places: passed.places })
    }
}

fn copy(socket: &impl AsFd) -> io::Result<OwnedFd> {
    socket.as_fd().try_clone_to_owned()
}

fn one_at_most<T>(mut passed: Vec<T>) -> Result<Option<T>, Failure> {
    match passed.len() {
        0 | 1 => Ok(passed.pop()),
        many => Err(Failure::Usage(format!(
            "{many} Unix sockets were passed in, and acpd listens on one: name it once with ListenStream= in the socket unit"
        ))),
    }
}

/// One that was passed in, and its copy that is served.
fn taken((name, kept): (String, std::net::TcpListener)) -> io::Result<(String, OwnedFd, TcpListener)> {
    let served = kept.try_clone()?;
    served.set_nonblocking(true)?;
    Ok((name, kept.into(), TcpListener::from_std(served)?))
}

async fn bind(listen: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(listen).await.map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => {
                let free = SocketAddr::new(listen.ip(), 0);
                format!("; another acpd, perhaps: `--listen {free}` picks a free port")
            }
            _ => String::new(),
        };
        Failure::Failed(format!("cannot listen on {listen}: {error}{remedy}"))
    })
}
