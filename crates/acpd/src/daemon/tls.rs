//! The roots of trust when a daemon speaks TLS: a file of certificates that was named, else the system's.

use super::error::DaemonError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where systems keep the certificates they trust, one file each: Debian, Fedora, SUSE and Alpine, OpenSSL's own.
const SYSTEM: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// A client's side of TLS that trusts `ca`, or else what `SSL_CERT_FILE` or the system names.
pub(super) fn client_config(at: &str, ca: Option<&Path>) -> Result<Arc<ClientConfig>, DaemonError> {
    let file = match ca {
        Some(file) => file.to_owned(),
        None => system_file().ok_or_else(|| DaemonError::NoCertificates { at: at.to_owned() })?,
    };
    let roots = roots(&file)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the suites of both versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The name that a daemon's certificate has to have.
pub(super) fn server_name(host: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(host.to_owned()).ok()
}

/// What to do about a handshake that failed, where that is known; `named` when a file of certificates was.
pub(super) fn remedy(error: &io::Error, named: bool) -> Option<&'static str> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(error) = error else { return None };
    match error {
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

/// Whether a handshake failed because the other side speaks something else.
pub(super) fn is_none(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::InvalidMessage(_)))
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
