//! TLS from a certificate and its key, both PEM.

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// A certificate for a listener's TLS.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

/// Why a listener cannot use TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others can read the key.
    #[error("`{}` has mode {mode:03o}, so others can read the key; run `chmod 600` on it", path.display())]
    Exposed {
        /// The key's file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file contains no PEM of the required kind.
    #[error("`{}` contains no {what} in PEM: {source}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What it should contain.
        what: &'static str,
        /// What was found.
        source: pem::Error,
    },
    /// The key and the certificate do not match, or are of an unsupported kind.
    #[error("`{}` and `{}` cannot be used: {source}", cert.display(), key.display())]
    Unusable {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads a chain of certificates and the key of the first.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let pem_error =
            |path: &Path, what, source| TlsError::Pem { path: path.to_owned(), what, source };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(cert)?)
            .collect::<Result<_, _>>()
            .map_err(|source| pem_error(cert, "certificate", source))?;
        if chain.is_empty() {
            return Err(pem_error(cert, "certificate", pem::Error::NoItemsFound));
        }
        check_mode(key)?;
        let secret = PrivateKeyDer::from_pem_slice(&read(key)?)
            .map_err(|source| pem_error(key, "private key", source))?;
        let unusable =
            |source| TlsError::Unusable { cert: cert.to_owned(), key: key.to_owned(), source };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

/// The group may read it: that is how systems share keys among services. Others may not.
fn check_mode(path: &Path) -> Result<(), TlsError> {
    let metadata = std::fs::metadata(path)
        .map_err(|source| TlsError::Read { path: path.to_owned(), source })?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o007 == 0 { Ok(()) } else { Err(TlsError::Exposed { path: path.to_owned(), mode }) }
}
