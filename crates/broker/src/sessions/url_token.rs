//! Session URLs and the bearer tokens that open them. Every live session has at most one token.
//! Only its hash is kept, in memory: it dies with the session and with the daemon.

use std::sync::{Arc, Mutex};

use ringback_core::policy::authorize;
use ringback_core::sessions::SessionPlace;
use ringback_proto::ids::SessionId;
use ringback_proto::principal::{KeyHolder, Principal};
use ringback_proto::secret::Secret;
use ringback_proto::tool::{TOOLS, ToolRow};
use ringback_proto::{Error, ErrorKind, Result};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

use crate::Broker;
use crate::identity::{Credential, Identity, new_secret, secret_hash};
use crate::kernel::Kernel;
use crate::lines::OfferedTool;
use crate::rooms::SharedRooms;
use crate::sessions::{LiveSession, Register};
use crate::sync::lock;

/// Path of session URLs below the daemon's base URL.
const PATH: &str = "/mcp/s/";

/// Access through a session's URL: acts as that session, and calls with its session key.
#[derive(Debug, Clone)]
pub struct SessionPass {
    session: SessionId,
    key: Option<Credential>,
    ended: CancellationToken,
}

impl SessionPass {
    /// Returns the session.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// Returns the session key, if there is one. It is checked at every call.
    #[must_use]
    pub const fn key(&self) -> Option<&Credential> {
        self.key.as_ref()
    }

    /// Replaces the key by the one sent with a request, or by none if that is not valid.
    #[must_use]
    pub fn with_key(self, key: Option<Credential>) -> Self {
        Self { key, ..self }
    }

    /// Returns whether access has ended.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Resolves when the session has ended, or its token was replaced.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

/// The token of a session's URL; empty until one is issued.
#[derive(Debug, Default)]
pub(super) struct Bearer(Mutex<Option<IssuedToken>>);

#[derive(Debug)]
struct IssuedToken {
    hash: [u8; 32],
    ended: CancellationToken,
}

impl Bearer {
    fn is_issued(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Replaces the token. The previous one becomes invalid.
    fn issue(&self, secret: &Secret) {
        let issued =
            IssuedToken { hash: secret_hash(secret.expose()), ended: CancellationToken::new() };
        if let Some(before) = lock(&self.0).replace(issued) {
            before.ended.cancel();
        }
    }

    /// Invalidates the token and ends access through it.
    pub(super) fn end(&self) {
        if let Some(issued) = lock(&self.0).take() {
            issued.ended.cancel();
        }
    }

    fn check(&self, secret: &str) -> Option<CancellationToken> {
        let hash = secret_hash(secret);
        let issued = lock(&self.0);
        let issued = issued.as_ref().filter(|issued| bool::from(issued.hash.ct_eq(&hash)))?;
        Some(issued.ended.clone())
    }
}

impl Broker {
    /// Checks the token of a session's URL. Access counts as use of the session.
    ///
    /// # Errors
    /// `not_found` when the session is not live, `unauthenticated` when this is not its token.
    pub fn enter_session(&self, session: SessionId, secret: &str) -> Result<SessionPass> {
        // A session that is ending still has its parts, but takes no new connections.
        let is_live = self.session_view(session).is_some_and(|view| view.status.is_live());
        let live = self.0.register.live(session).filter(|_| is_live).ok_or_else(|| {
            let message = format!("session {session} is not live: it has ended");
            Error::new(ErrorKind::NotFound, message)
        })?;
        let ended = live.bearer.check(secret).ok_or_else(|| {
            let message = "invalid token for this session's URL";
            Error::new(ErrorKind::Unauthenticated, message)
        })?;
        lock(&self.0.register.table).touch(self.0.kernel.now(), session);
        Ok(self.0.url_tokens.pass(session, &live, ended))
    }

    /// Returns the daemon's own tools, and the tools on lines, that may be called at a session's
    /// URL.
    #[must_use]
    pub fn key_tools(&self, pass: &SessionPass) -> (Vec<&'static ToolRow>, Vec<Arc<OfferedTool>>) {
        let Some(Ok(principal)) = pass.key.as_ref().map(|key| key.principal(self.0.kernel.now()))
        else {
            return (Vec::new(), Vec::new());
        };
        let may_call = |row: &&&'static ToolRow| authorize(principal, row).is_ok();
        let native = TOOLS.iter().filter(may_call).copied().collect();
        let on_lines = self.0.lines.page(principal, "", "", usize::MAX);
        (native, on_lines)
    }
}

/// Session URLs and their tokens.
#[derive(Debug)]
pub(crate) struct UrlTokens {
    kernel: Arc<Kernel>,
    identity: Arc<Identity>,
    register: Arc<Register>,
}

impl UrlTokens {
    pub(crate) fn new(shared_rooms: &SharedRooms) -> Self {
        Self {
            kernel: shared_rooms.kernel.clone(),
            identity: shared_rooms.identity.clone(),
            register: shared_rooms.register.clone(),
        }
    }

    fn pass(
        &self,
        session: SessionId,
        live: &LiveSession,
        ended: CancellationToken,
    ) -> SessionPass {
        let key = live.key.as_ref().and_then(|key| self.identity.tokens.find(key.id));
        SessionPass { session, key: key.map(Credential::Token), ended }
    }

    /// Returns the URL of a session, if the daemon has an HTTP listener.
    pub(crate) fn session_url(&self, session: SessionId) -> Option<String> {
        self.kernel.config.sessions.doors.url.as_ref().map(|base| format!("{base}{PATH}{session}"))
    }

    /// Returns the URL of a session to the principal that started it, with a token if none was
    /// issued yet.
    pub(super) fn first_pass(
        &self,
        principal: &Principal,
        place: SessionPlace,
    ) -> Option<(String, Option<Secret>)> {
        let is_own = match principal.held_by {
            None => place.owner == principal.id,
            Some(KeyHolder { session, .. }) => place.parent == Some(session),
        };
        let url = self.session_url(place.id).filter(|_| is_own)?;
        let live = self.register.live(place.id)?;
        let token = (!live.bearer.is_issued()).then(|| self.issue(&live));
        Some((url, token))
    }

    /// Returns the URL of a session with a new token.
    pub(super) fn new_pass(&self, session: SessionId) -> Result<(String, Secret)> {
        let url = self.session_url(session).ok_or_else(|| {
            let message = "this daemon has no HTTP listener, so its sessions have no URL";
            Error::new(ErrorKind::Conflict, message)
        })?;
        let live = self.register.live(session);
        let live = live.ok_or_else(|| Error::not_found("session", session))?;
        Ok((url, self.issue(&live)))
    }

    fn issue(&self, live: &LiveSession) -> Secret {
        let (secret, _) = new_secret(&self.kernel.entropy);
        live.bearer.issue(&secret);
        secret
    }
}
