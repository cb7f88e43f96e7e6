//! Where clients come in: on the sockets that were passed in, else on those that the configuration names.

use super::check_exposure;
use crate::config::Config;
use crate::exit::Failure;
use crate::passed::Passed;
use acpd_gateway::{Listener, LocalSocket, PassedSocket};
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// What is listened on.
pub(super) struct Doors {
    pub(super) listeners: Vec<Listener>,
    /// The addresses over TCP, at least one.
    pub(super) addresses: Vec<SocketAddr>,
    /// Until the daemon has ended.
    pub(super) local: LocalSocket,
}

impl Doors {
    /// Opens them in a state directory that is there.
    pub(super) async fn open(
        passed: Passed,
        config: &Config,
        tls: Option<Arc<ServerConfig>>,
    ) -> Result<Self, Failure> {
        let unix = one_at_most(passed.unix)?.map(|(_, listener)| PassedSocket { listener, is_ours: false });
        let (local, unix) = LocalSocket::listen(&config.storage.path, unix)?;
        // Behind the lock: the start of a second daemon is told of the first, not of its port.
        let tcp = match passed.tcp.is_empty() {
            true => vec![bind(config.server.listen).await?],
            false => passed.tcp.into_iter().map(|(_, listener)| taken(listener)).collect::<Result<_, _>>()?,
        };
        let addresses = tcp.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>()?;
        for address in &addresses {
            check_exposure(config, *address).map_err(Failure::Usage)?;
        }
        let tcp = tcp.into_iter().map(|listener| Listener::Tcp(listener, tls.clone()));
        Ok(Self { listeners: tcp.chain([Listener::Unix(unix)]).collect(), addresses, local })
    }
}

fn one_at_most<T>(mut passed: Vec<T>) -> Result<Option<T>, Failure> {
    match passed.len() {
        0 | 1 => Ok(passed.pop()),
        many => Err(Failure::Usage(format!(
            "{many} Unix sockets were passed in, and acpd listens on one: name it once with ListenStream= in the socket unit"
        ))),
    }
}

fn taken(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
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
