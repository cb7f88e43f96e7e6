//! TLS with a daemon. The roots of trust are in a file of certificates that was named, else the system's.

use super::connect::failed;
use super::error::DaemonError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where systems keep the certificates they trust, one file each: Debian, Fedora, SUSE and Alpine, OpenSSL's own.
const SYSTEM: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// Speaks TLS over a connection, trusting `ca`, or else what `SSL_CERT_FILE` or the system names.
pub(super) async fn handshake<T: AsyncRead + AsyncWrite + Unpin>(
    at: &str,
    host: &str,
    ca: Option<&Path>,
    stream: T,
) -> Result<TlsStream<T>, DaemonError> {
    let file = ca.map(Path::to_owned).or_else(system_file);
    let roots = roots(&file.ok_or_else(|| DaemonError::NoCertificates { at: at.to_owned() })?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the suites of both versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "no certificate can have this host's name");
        failed(at, source)
    })?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|source| {
        let at = at.to_owned();
        match source.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(wrong)) => match remedy(wrong, ca.is_some()) {
                Some(remedy) => DaemonError::Untrusted { at, remedy, source },
                None => failed(&at, source),
            },
            Some(rustls::Error::InvalidMessage(_)) => DaemonError::NotTls { at },
            _ => failed(&at, source),
        }
    })
}

/// What to do about a certificate, where that is known; `named` when a file of certificates was.
fn remedy(wrong: &CertificateError, named: bool) -> Option<&'static str> {
    match wrong {
        // `openssl req -x509` makes such certificates unless it is told otherwise.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => Some(
            "it is that of an authority; make one that says basicConstraints=CA:FALSE, and name it with --ca FILE \
             (docs/operations.md has a line that makes one)",
        ),
        CertificateError::UnknownIssuer if named => {
            Some("none of the certificates that --ca or ACPD_CA names has vouched for it")
        }
        CertificateError::UnknownIssuer => Some(
            "no authority that this system trusts has vouched for it; name the one that did, or a self-signed \
             certificate itself, with --ca FILE or ACPD_CA",
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Some("it is for other names; call the daemon by one that is in its subjectAltName")
        }
        _ => None,
    }
}

fn system_file() -> Option<PathBuf> {
    let named = std::env::var_os("SSL_CERT_FILE").filter(|name| !name.is_empty()).map(PathBuf::from);
    named.or_else(|| SYSTEM.iter().map(PathBuf::from).find(|file| file.is_file()))
}

fn roots(file: &Path) -> Result<RootCertStore, DaemonError> {
    let unusable = |detail: String| DaemonError::Certificates { path: file.display().to_string(), detail };
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    // A system's file may have one that rustls does not take; one that does is enough.
    let (added, _ignored) = roots.add_parsable_certificates(certificates);
    match added {
        0 => Err(unusable("there is none in it".to_owned())),
        _ => Ok(roots),
    }
}
