//! The daemon behind standard input and output, and the MCP session with it.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use tokio::sync::{Mutex, RwLock};

use super::Target;

/// A daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    target: Target,
    http: Client<HttpConnector, Full<Bytes>>,
    session: RwLock<Option<Session>>,
    /// Held during a handshake, so that one request does it for all.
    pub(super) handshake: Mutex<()>,
}

/// An MCP session with the daemon.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) version: String,
    /// The message that opened it, so that it can be reopened after a restart of the daemon.
    pub(super) initialize: Bytes,
}

impl Daemon {
    pub(super) fn new(target: Target) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self {
            target,
            http: Client::builder(TokioExecutor::new()).build(connector),
            session: RwLock::new(None),
            handshake: Mutex::new(()),
        }
    }

    pub(super) fn address(&self) -> &str {
        &self.target.address
    }

    pub(super) async fn session(&self) -> Option<Session> {
        self.session.read().await.clone()
    }

    pub(super) async fn set_session(&self, session: Session) {
        *self.session.write().await = Some(session);
    }

    /// Sends a request with the headers of the MCP session, if there is one.
    pub(super) async fn send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        session: Option<&Session>,
        body: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}/mcp", self.target.address))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        if let Some(token) = &self.target.token {
            request = request.header("authorization", format!("Bearer {}", token.expose()));
        }
        if let Some(session) = session {
            request = request
                .header("mcp-session-id", &session.id)
                .header("mcp-protocol-version", &session.version);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).unwrap_or_else(|error| {
            // Only a token or an address that is not a valid header can cause this; the daemon
            // refuses it.
            tracing::error!(%error, "cannot build a request");
            Request::new(Full::default())
        });
        self.http.request(request).await
    }

    /// Ends the MCP session.
    pub(super) async fn leave(&self) {
        let Some(session) = self.session.write().await.take() else { return };
        let sent = self.send(Method::DELETE, &[], Some(&session), Bytes::new()).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "cannot end the MCP session; it will expire");
        }
    }
}
