//! A byte stream to a daemon: TCP, TLS over it, or a Unix socket. Taking a connection is bounded in time.

use super::error::DaemonError;
use super::tls;
use crate::address::Address;
use acpd_gateway::{ConnectError, connect_local, connect_socket};
use acpd_host::chain;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// How long a connection may take, with the look for the name and the handshake of TLS.
const CONNECT: Duration = Duration::from_secs(10);

/// What carries bytes both ways.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Connects; `at` is what errors call the address, and `ca` names the certificates to trust instead of the system's.
pub(crate) async fn connect(
    address: &Address,
    at: &str,
    ca: Option<&Path>,
) -> Result<Box<dyn Duplex>, DaemonError> {
    let connected = tokio::time::timeout(CONNECT, connect_unbounded(address, at, ca)).await;
    connected.unwrap_or_else(|_| Err(DaemonError::Slow { at: at.to_owned(), within: CONNECT }))
}

async fn connect_unbounded(
    address: &Address,
    at: &str,
    ca: Option<&Path>,
) -> Result<Box<dyn Duplex>, DaemonError> {
    let unix = |connected: Result<UnixStream, ConnectError>| match connected {
        Ok(stream) => Ok(Box::new(stream) as Box<dyn Duplex>),
        Err(ConnectError::Io(error)) => Err(failed(at, error)),
        Err(untrusted) => Err(DaemonError::NotOurs(untrusted)),
    };
    let (host, port, tls) = match address {
        Address::Unix(path) => return unix(connect_socket(path).await),
        Address::Local(dir) => return unix(connect_local(dir).await),
        Address::Tcp { host, port, tls, .. } => (host, *port, *tls),
    };
    let tcp = TcpStream::connect((host.as_str(), port)).await.map_err(|error| failed(at, error))?;
    tcp.set_nodelay(true).map_err(|error| failed(at, error))?;
    match tls {
        true => Ok(Box::new(tls::handshake(at, host, ca, tcp).await?)),
        false => Ok(Box::new(tcp)),
    }
}

/// Speaks TLS with `address` over a stream that leads there; `at` is what errors call it.
pub(crate) async fn secure(
    address: &Address,
    at: &str,
    stream: Box<dyn Duplex>,
) -> Result<Box<dyn Duplex>, DaemonError> {
    let Address::Tcp { host, .. } = address else { return Ok(stream) };
    match tokio::time::timeout(CONNECT, tls::handshake(at, host, None, stream)).await {
        Ok(done) => Ok(Box::new(done?)),
        Err(_) => Err(DaemonError::Slow { at: at.to_owned(), within: CONNECT }),
    }
}

/// Why there is no connection.
pub(super) fn failed(at: &str, source: io::Error) -> DaemonError {
    let at = at.to_owned();
    match source.kind() {
        // A state directory that is none says so itself where it is needed.
        ErrorKind::ConnectionRefused | ErrorKind::NotFound | ErrorKind::NotADirectory => {
            DaemonError::Absent { at, source }
        }
        _ => DaemonError::Connect { at, source },
    }
}

/// Why there is no connection, in words that are not about a daemon.
pub(crate) fn unreached(error: DaemonError) -> String {
    match error {
        DaemonError::Absent { source, .. } | DaemonError::Connect { source, .. } => source.to_string(),
        DaemonError::Slow { within, .. } => format!("it took longer than {} s", within.as_secs()),
        DaemonError::NotTls { .. } => "what answers does not speak TLS".to_owned(),
        DaemonError::Untrusted { source, .. } => format!(
            "its certificate is not accepted: {source}; SSL_CERT_FILE names a file of certificates to trust instead of the system's"
        ),
        DaemonError::NoCertificates { .. } => {
            "there are no certificates to check its own against; name a file of trusted ones in SSL_CERT_FILE"
                .to_owned()
        }
        other => chain(&other),
    }
}
