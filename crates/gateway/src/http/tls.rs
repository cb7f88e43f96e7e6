//! TLS from PEM files (contract 1.7): for those who let others reach acpd.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("cannot read {what} from {}", path.display())]
    File {
        /// What should be in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// The certificate file holds none.
    #[error("there is no certificate in {}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Certificate and key do not belong together, or are of no use.
    #[error("the certificate and key cannot be used")]
    Unusable {
        /// What is wrong.
        #[source]
        source: rustls::Error,
    },
}

/// Reads a certificate chain and its key; offers HTTP/2 and HTTP/1.1.
///
/// # Errors
/// When they cannot be read or used.
pub fn tls_config(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::File { what, path, source }
    };
    let chain = CertificateDer::pem_file_iter(cert).map_err(failed("a certificate", cert))?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(failed("a certificate", cert))?;
    if chain.is_empty() {
        return Err(TlsError::Empty { path: cert.to_owned() });
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(failed("a private key", key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let unusable = |source| TlsError::Unusable { source };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
