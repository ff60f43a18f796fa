//! A provider that follows a test's script, model proxies to it, and an agent that uses them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self as client, SendRequest};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
pub(crate) use ringback_broker::SessionKey;
use ringback_broker::{LimitReached, ModelRequest};
use ringback_egress::{
    AdmissionFuture, Config, KeyFile, KeyHeader, KeySource, ModelDoors, Prices, Provider, Recorder,
};
use ringback_proto::ids::SessionId;
use ringback_proto::secret::Secret;
use ringback_testkit::within;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What only the provider may see.
pub(crate) const KEY: &str = "sk-real-0123456789abcdef";
/// What the agent got in its place.
pub(crate) const PLACEHOLDER: &str = "placeholder-of-the-agent";

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

type Behaviour = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// A request to a provider.
#[derive(Debug, Clone)]
pub(crate) struct ProviderRequest {
    pub(crate) method: String,
    pub(crate) uri: String,
    pub(crate) headers: HeaderMap,
}

/// A provider on this machine.
pub(crate) struct Upstream {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<ProviderRequest>>>,
    _tasks: JoinSet<()>,
}

/// The records, and whether requests are admitted; undecided while it is `None`; and the keys.
#[derive(Debug)]
pub(crate) struct Records(
    Mutex<Vec<(SessionId, ModelRequest)>>,
    pub(crate) watch::Sender<Option<bool>>,
    /// The keys that were used.
    pub(crate) Mutex<Vec<String>>,
);

impl Default for Records {
    fn default() -> Self {
        Self(Mutex::default(), watch::Sender::new(Some(true)), Mutex::default())
    }
}

impl Recorder for Records {
    fn admit(&self, _session: SessionId) -> AdmissionFuture<'_> {
        Box::pin(async {
            let is_open = self.1.subscribe().wait_for(Option::is_some).await.map(|it| *it);
            match is_open {
                Ok(Some(true)) => Ok(()),
                Ok(Some(false) | None) | Err(_) => Err(LimitReached { limit: "max_tokens" }),
            }
        })
    }

    fn conceal(&self, _session: SessionId, key: &Secret) {
        self.2.lock().unwrap().push(key.expose().to_owned());
    }

    fn record(&self, session: SessionId, request: &ModelRequest) {
        self.0.lock().unwrap().push((session, request.clone()));
    }
}

/// Model proxies to one model, `m`, and the first session's.
pub(crate) struct World {
    pub(crate) doors: Arc<ModelDoors>,
    pub(crate) session: SessionId,
    pub(crate) records: Arc<Records>,
    pub(crate) key_file: PathBuf,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) guard: Option<Box<dyn std::any::Any + Send + Sync>>,
    connections: JoinSet<()>,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct FullAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

pub(crate) fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

pub(crate) fn session(number: u8) -> SessionId {
    SessionId::from_random([number; 16])
}

impl Upstream {
    /// A provider that reads the request and answers `fine`.
    pub(crate) async fn fine() -> Self {
        Self::start(|request| async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            Response::new(full(format!("fine, {} bytes", body.len())))
        })
        .await
    }

    pub(crate) async fn start<F>(
        behaviour: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        Self::start_with(None, behaviour).await
    }

    pub(crate) async fn start_with<F>(
        tls: Option<TlsAcceptor>,
        behaviour: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (scheme, port) =
            (if tls.is_some() { "https" } else { "http" }, listener.local_addr().unwrap().port());
        let asked = Arc::<Mutex<Vec<ProviderRequest>>>::default();
        let noted = Arc::clone(&asked);
        let behaviour: Behaviour = Arc::new(move |request| {
            let headers = request.headers().clone();
            let (method, uri) = (request.method().to_string(), request.uri().to_string());
            noted.lock().unwrap().push(ProviderRequest { method, uri, headers });
            Box::pin(behaviour(request))
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, behaviour) = (tls.clone(), Arc::clone(&behaviour));
                connections.spawn(serve(stream, tls, behaviour));
            }
        });
        Self { url: format!("{scheme}://localhost:{port}"), asked, _tasks: tasks }
    }

    pub(crate) fn asked(&self) -> Vec<ProviderRequest> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, behaviour: Behaviour) {
    match tls {
        None => converse(stream, behaviour).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                converse(stream, behaviour).await;
            }
        }
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, behaviour: Behaviour) {
    let service = service_fn(|request| {
        let answering = behaviour(request);
        async move { Ok::<_, Infallible>(answering.await) }
    });
    drop(server::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

impl World {
    pub(crate) fn start(url: &str) -> Self {
        Self::start_with(url, Config::default(), |_| ())
    }

    pub(crate) fn start_with(
        url: &str,
        config: Config,
        change: impl FnOnce(&mut Provider),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key_file = dir.path().join("key");
        write_key(&key_file, KEY);
        let mut provider = Provider {
            url: url.parse().unwrap(),
            key: Some(KeySource::File(KeyFile::new(key_file.clone()))),
            header: KeyHeader::Authorization,
            ca_file: None,
            requests_max: None,
            prices: Prices::default(),
            api: None,
            variable: None,
        };
        change(&mut provider);
        let doors = ModelDoors::new(config, BTreeMap::from([("m".to_owned(), provider)])).unwrap();
        let records = Arc::<Records>::default();
        let session = session(1);
        let mut world = Self {
            doors: Arc::new(doors),
            session,
            records,
            key_file,
            dir,
            guard: None,
            connections: JoinSet::new(),
        };
        world.guard = Some(world.open(session));
        world
    }

    /// Opens the model proxy of a session.
    pub(crate) fn open(&self, session: SessionId) -> Box<dyn std::any::Any + Send + Sync> {
        let dir = self.dir_of(session);
        std::fs::create_dir_all(&dir).unwrap();
        self.doors
            .serve(Arc::<Records>::clone(&self.records), session, &dir, "m", SessionKey::default())
            .unwrap()
    }

    /// Opens the proxy to another provider, with a key of its own.
    pub(crate) fn open_with(
        &self,
        session: SessionId,
        provider: &str,
        key: SessionKey,
    ) -> Box<dyn std::any::Any + Send + Sync> {
        let (dir, records) = (self.dir_of(session), Arc::<Records>::clone(&self.records));
        std::fs::create_dir_all(&dir).unwrap();
        self.doors.serve(records, session, &dir, provider, key).unwrap()
    }

    fn dir_of(&self, session: SessionId) -> Utf8PathBuf {
        let name = session.to_string();
        Utf8Path::from_path(self.dir.path()).unwrap().join(&name[name.len() - 8..])
    }

    pub(crate) fn socket(&self) -> Utf8PathBuf {
        self.dir_of(self.session).join("model.sock")
    }

    /// A connection of the agent.
    pub(crate) async fn connect(&mut self) -> SendRequest<Body> {
        let stream = UnixStream::connect(self.socket()).await.unwrap();
        let (sender, connection) = client::handshake(TokioIo::new(stream)).await.unwrap();
        self.connections.spawn(async move { drop(connection.await) });
        sender
    }

    /// Sends a request, and reads the answer to its end.
    pub(crate) async fn ask(&mut self, request: Request<Body>) -> FullAnswer {
        let mut agent = self.connect().await;
        let response = within("an answer comes", agent.send_request(request)).await.unwrap();
        whole(response).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> FullAnswer {
        self.ask(post(path, full(body.to_owned()))).await
    }

    /// The records, once there are this many.
    pub(crate) async fn records(&self, n_records: usize) -> Vec<(SessionId, ModelRequest)> {
        within("records come", async {
            loop {
                let records = self.records.0.lock().unwrap().clone();
                if records.len() >= n_records {
                    return records;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }

    pub(crate) async fn stop(mut self) {
        self.guard.take();
        within("the model proxies stop", self.doors.stop()).await;
    }
}

pub(crate) fn write_key(path: &std::path::Path, key: &str) {
    std::fs::write(path, format!("{key}\n")).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

pub(crate) fn post(path: &str, body: Body) -> Request<Body> {
    Request::post(path)
        .header("host", "127.0.0.1:1")
        .header("authorization", format!("Bearer {PLACEHOLDER}"))
        .header("x-api-key", PLACEHOLDER)
        .header("content-type", "application/json")
        .body(body)
        .unwrap()
}

pub(crate) async fn whole(response: Response<Incoming>) -> FullAnswer {
    let (parts, body) = response.into_parts();
    let body = within("the body comes", body.collect()).await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    FullAnswer { status: parts.status, headers: parts.headers, body }
}
