//! The daemon behind standard input and output, and the MCP session with it.

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::{Mutex, RwLock};

use crate::{Answer, Endpoint, SendError};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) endpoint: Endpoint,
    session: RwLock<Option<Session>>,
    /// Held during a handshake, so that one request does it for all.
    pub(super) handshake: Mutex<()>,
}

/// An MCP session with the daemon.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) id: HeaderValue,
    pub(super) version: HeaderValue,
    /// The message that opened it, so that it can be reopened after a restart of the daemon.
    pub(super) initialize: Bytes,
}

impl Daemon {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, session: RwLock::new(None), handshake: Mutex::new(()) }
    }

    pub(super) async fn session(&self) -> Option<Session> {
        self.session.read().await.clone()
    }

    pub(super) async fn set_session(&self, session: Session) {
        *self.session.write().await = Some(session);
    }

    /// Sends a message in an MCP session, or the one that opens it.
    pub(super) async fn post(
        &self,
        session: Option<&Session>,
        message: Bytes,
    ) -> Result<Answer, SendError> {
        let headers = session.map(Session::headers).unwrap_or_default();
        self.endpoint.send(Method::POST, headers, message).await
    }

    /// Opens a stream of an MCP session: after an event, or the one outside of any request.
    pub(super) async fn listen(
        &self,
        session: &Session,
        last_event: Option<HeaderValue>,
    ) -> Result<Answer, SendError> {
        let mut headers = session.headers();
        headers.extend(last_event.map(|event| (LAST_EVENT_ID, event)));
        self.endpoint.send(Method::GET, headers, Bytes::new()).await
    }

    /// Ends the MCP session.
    pub(super) async fn leave(&self) {
        let Some(session) = self.session.write().await.take() else { return };
        let sent = self.endpoint.send(Method::DELETE, session.headers(), Bytes::new()).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "cannot end the MCP session; it will expire");
        }
    }
}

impl Session {
    fn headers(&self) -> HeaderMap {
        let version = (PROTOCOL_VERSION, self.version.clone());
        HeaderMap::from_iter([(SESSION_ID, self.id.clone()), version])
    }
}
