//! A byte stream to a daemon: TCP, TLS over it, or a Unix socket. Taking a connection is bounded in time.

use super::address::Address;
use super::error::DaemonError;
use super::tls;
use acpd_gateway::{ConnectError, connect_local, connect_socket};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long a connection may take, with the look for the name and the handshake of TLS.
pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// A stream to a daemon.
pub(super) enum DaemonStream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

/// Connects; `ca` names the certificates to trust instead of the system's.
pub(super) async fn connect(address: &Address, ca: Option<&Path>) -> Result<DaemonStream, DaemonError> {
    let at = || address.to_string();
    match tokio::time::timeout(CONNECT, connect_unbounded(address, ca)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(Trouble::Io(source))) => Err(match source.kind() {
            // A state directory that is none says so itself where it is needed.
            ErrorKind::ConnectionRefused | ErrorKind::NotFound | ErrorKind::NotADirectory => {
                DaemonError::Absent { at: at(), source }
            }
            _ => DaemonError::Connect { at: at(), source },
        }),
        Ok(Err(Trouble::Told(error))) => Err(error),
        Err(_) => Err(DaemonError::Slow { at: at(), within: CONNECT }),
    }
}

enum Trouble {
    Io(io::Error),
    Told(DaemonError),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ConnectError> for Trouble {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Io(error) => Self::Io(error),
            untrusted => Self::Told(DaemonError::NotOurs(untrusted)),
        }
    }
}

async fn connect_unbounded(address: &Address, ca: Option<&Path>) -> Result<DaemonStream, Trouble> {
    let (host, port, tls) = match address {
        Address::Unix(path) => return Ok(DaemonStream::Unix(connect_socket(path).await?)),
        Address::Local(dir) => return Ok(DaemonStream::Unix(connect_local(dir).await?)),
        Address::Tcp { host, port, tls, .. } => (host, *port, *tls),
    };
    let tcp = TcpStream::connect((host.as_str(), port)).await?;
    tcp.set_nodelay(true)?;
    if !tls {
        return Ok(DaemonStream::Tcp(tcp));
    }
    let config = tls::client_config(&address.to_string(), ca).map_err(Trouble::Told)?;
    let name = tls::server_name(host)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "no certificate can have this host's name"))?;
    let shaken = TlsConnector::from(config).connect(name, tcp).await;
    let stream = shaken.map_err(|source| match tls::remedy(&source, ca.is_some()) {
        Some(remedy) => Trouble::Told(DaemonError::Untrusted { at: address.to_string(), remedy, source }),
        None if tls::is_none(&source) => Trouble::Told(DaemonError::NotTls { at: address.to_string() }),
        None => Trouble::Io(source),
    })?;
    Ok(DaemonStream::Tls(Box::new(stream)))
}

impl AsyncRead for DaemonStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for DaemonStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
