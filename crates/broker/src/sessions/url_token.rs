//! The URL of a session: who may enter there. Every live session has at most one bearer token, of which
//! only the hash is kept, in memory: it dies with the session, and with the daemon.

use std::sync::{Arc, Mutex};

use ringback_core::policy::authorize;
use ringback_core::sessions::Where;
use ringback_proto::ids::SessionId;
use ringback_proto::principal::{HeldBy, Principal};
use ringback_proto::secret::Secret;
use ringback_proto::tool::{TOOLS, ToolRow};
use ringback_proto::{Error, ErrorKind, Result};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

use crate::Broker;
use crate::identity::{Credential, Identity, new_secret, secret_hash};
use crate::kernel::Kernel;
use crate::lines::OfferedTool;
use crate::rooms::Ground;
use crate::sessions::{Live, Register};
use crate::sync::lock;

/// Where the URLs of sessions are, below the daemon's own.
const PATH: &str = "/mcp/s/";

/// Somebody who was let in at a session's URL. It is that session, and calls with its key.
#[derive(Debug, Clone)]
pub struct SessionPass {
    session: SessionId,
    key: Option<Credential>,
    ended: CancellationToken,
}

impl SessionPass {
    /// Which session.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// The key to the daemon's own tools, if there is one. It is checked at every call.
    #[must_use]
    pub const fn key(&self) -> Option<&Credential> {
        self.key.as_ref()
    }

    /// The same with the key that was shown with a request; without any if that is not valid.
    #[must_use]
    pub fn with_key(self, key: Option<Credential>) -> Self {
        Self { key, ..self }
    }

    /// Whether it lets nobody in any more.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Resolves when the session is over, or its token was replaced.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

/// The token of a session's URL; none until somebody is given one.
#[derive(Debug, Default)]
pub(super) struct Bearer(Mutex<Option<Issued>>);

#[derive(Debug)]
struct Issued {
    hash: [u8; 32],
    ended: CancellationToken,
}

impl Bearer {
    fn is_issued(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Puts another token in place of the one before, which is void.
    fn issue(&self, secret: &Secret) {
        let issued = Issued { hash: secret_hash(secret.expose()), ended: CancellationToken::new() };
        if let Some(before) = lock(&self.0).replace(issued) {
            before.ended.cancel();
        }
    }

    /// Void from now on, and whoever is in is told.
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
    /// Lets somebody in at the URL of a session, which counts as a use of it.
    ///
    /// # Errors
    /// `not_found` when the session is not live, `unauthenticated` when this is not its token.
    pub fn enter_session(&self, session: SessionId, secret: &str) -> Result<SessionPass> {
        // One that is being ended still has its parts, but it is over for whoever comes now.
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

    /// The daemon's own tools that somebody at a session's URL may call, and those on lines.
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

/// The URLs of sessions, and the tokens that open them.
#[derive(Debug)]
pub(crate) struct UrlTokens {
    kernel: Arc<Kernel>,
    identity: Arc<Identity>,
    register: Arc<Register>,
}

impl UrlTokens {
    pub(crate) fn new(ground: &Ground) -> Self {
        Self {
            kernel: ground.kernel.clone(),
            identity: ground.identity.clone(),
            register: ground.register.clone(),
        }
    }

    fn pass(&self, session: SessionId, live: &Live, ended: CancellationToken) -> SessionPass {
        let key = live.key.as_ref().and_then(|key| self.identity.tokens.find(key.id));
        SessionPass { session, key: key.map(Credential::Token), ended }
    }

    /// Where a session is reached, if anything listens there.
    pub(crate) fn session_url(&self, session: SessionId) -> Option<String> {
        self.kernel.config.sessions.doors.url.as_ref().map(|base| format!("{base}{PATH}{session}"))
    }

    /// The URL of a session, for who started it, with its token if nobody has been given one.
    pub(super) fn first_pass(
        &self,
        principal: &Principal,
        place: Where,
    ) -> Option<(String, Option<Secret>)> {
        let is_own = match principal.held_by {
            None => place.owner == principal.id,
            Some(HeldBy { session, .. }) => place.parent == Some(session),
        };
        let url = self.session_url(place.id).filter(|_| is_own)?;
        let live = self.register.live(place.id)?;
        let token = (!live.bearer.is_issued()).then(|| self.issue(&live));
        Some((url, token))
    }

    /// The URL of a session with a new token.
    pub(super) fn new_pass(&self, session: SessionId) -> Result<(String, Secret)> {
        let url = self.session_url(session).ok_or_else(|| {
            let message = "this daemon has no HTTP listener, so its sessions have no URL";
            Error::new(ErrorKind::Conflict, message)
        })?;
        let live = self.register.live(session);
        let live = live.ok_or_else(|| Error::not_found("session", session))?;
        Ok((url, self.issue(&live)))
    }

    fn issue(&self, live: &Live) -> Secret {
        let (secret, _) = new_secret(&self.kernel.entropy);
        live.bearer.issue(&secret);
        secret
    }
}
