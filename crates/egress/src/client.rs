//! The connections to a provider.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::rt::Executor;
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tokio_util::task::TaskTracker;
use tower::BoxError;
use tower::timeout::Timeout;
use tower::util::BoxCloneSyncService;

use crate::model::Upload;
use crate::{Config, Provider, SecretError};

/// An agent thinks between its requests; a new handshake costs more than an idle connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Idle connections.
const IDLE_MAX: usize = 8;
/// Holds the head of an answer and bounds the buffered part of a body.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;

/// The HTTP client of one provider. It follows no redirect and uses no proxy.
pub(crate) type ProviderClient = Client<Connector, Upload>;

/// Why a configured model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// Its key cannot be used.
    #[error(transparent)]
    Key(#[from] SecretError),
    /// The key would be sent unencrypted.
    #[error(
        "`url` is plain http to another machine and would send the key unencrypted; use https, or \
         a model without a key"
    )]
    Clear,
    /// The root certificates cannot be read.
    #[error("`{}` contains no certificates in PEM: {reason}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system has no root certificates.
    #[error("this system has no root certificates; install `ca-certificates`, or set `ca_file`")]
    NoRoots,
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Runs connections as tracked tasks.
#[derive(Debug, Clone)]
struct TrackedExecutor(TaskTracker);

impl<F: Future<Output: Send + 'static> + Send + 'static> Executor<F> for TrackedExecutor {
    fn execute(&self, task: F) {
        drop(self.0.spawn(task));
    }
}

impl Provider {
    /// Checks everything that a request needs except the provider itself. Blocks.
    ///
    /// # Errors
    /// What is wrong, and what to do about it.
    pub fn check(&self) -> Result<(), ProviderError> {
        if let Some(key) = &self.key {
            if self.url.is_in_the_clear() {
                return Err(ProviderError::Clear);
            }
            key.look()?;
        }
        self.roots().map(drop)
    }

    /// The root certificates for the provider.
    fn roots(&self) -> Result<RootCertStore, ProviderError> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = &self.ca_file {
            for certificate in certificates(path)? {
                roots.add(certificate)?;
            }
        } else if self.url.is_tls() {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err(ProviderError::NoRoots);
            }
        }
        Ok(roots)
    }

    /// Builds the client of this provider; its connections are among `tasks`.
    pub(crate) fn client(
        &self,
        config: &Config,
        tasks: &TaskTracker,
    ) -> Result<ProviderClient, ProviderError> {
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.roots()?)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        // Covers name lookup, connection and handshake together.
        let connector = BoxCloneSyncService::new(Timeout::new(https, config.connect_timeout));
        Ok(Client::builder(TrackedExecutor(tasks.clone()))
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_MAX)
            .http1_max_buf_size(BUFFER_BYTES_MAX)
            .build(connector))
    }
}

/// Why a provider cannot be reached, without its address or anything it sent.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> &'static str {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<tower::timeout::error::Elapsed>() {
            return "connecting to it took too long";
        }
        if error.is::<rustls::Error>() {
            return "its certificate or its TLS is not trusted";
        }
        if let Some(io) = error.downcast_ref::<io::Error>() {
            if io.kind() == ErrorKind::ConnectionRefused {
                return "it refuses connections";
            }
            if io.kind() == ErrorKind::TimedOut {
                return "connecting to it took too long";
            }
            // The error inside an I/O error is not its source, but the error itself.
            if let Some(inner) = io.get_ref() {
                cause = Some(inner);
                continue;
            }
        }
        if error.to_string().starts_with("dns error") {
            return "its name cannot be resolved";
        }
        cause = error.source();
    }
    "the connection to it failed"
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ProviderError> {
    let failed = |reason: String| ProviderError::CaFile { path: path.to_owned(), reason };
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| failed(error.to_string()))?;
    if found.is_empty() { Err(failed("no certificate found".to_owned())) } else { Ok(found) }
}
