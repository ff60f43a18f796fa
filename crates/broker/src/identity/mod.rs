//! Identity: tokens, and who a caller is.

mod tokens;

use std::sync::Arc;

use ringback_core::policy;
use ringback_proto::ids::TokenId;
use ringback_proto::principal::{Principal, PrincipalId};
use ringback_proto::record::TokenRecord;
use ringback_proto::{Error, ErrorKind, Result};

pub use self::tokens::Credential;
pub(crate) use self::tokens::{NewKey, SECRET_PREFIX, Token, Tokens, new_secret, secret_hash};
use crate::kernel::Kernel;

/// How callers of an HTTP edge authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// With a bearer token.
    Token,
    /// Not at all: any client that reaches the listener is the daemon's own user. Only on loopback.
    Open,
}

/// All tokens.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) tokens: Tokens,
}

impl Identity {
    pub(crate) fn new(kernel: Arc<Kernel>, records: Vec<TokenRecord>) -> Self {
        Self { kernel, tokens: Tokens::load(records) }
    }

    /// Returns the credential of a principal, for work done in its name.
    pub(crate) fn credential_of(&self, principal: &Arc<Principal>) -> Result<Credential> {
        policy::no_agent(principal, "calling back")?;
        match self.tokens.credential(principal.id) {
            Some(credential) => Ok(credential),
            None if principal.id == PrincipalId::Local => {
                Ok(Credential::Local(Arc::clone(principal)))
            }
            None => Err(Error::new(ErrorKind::Unauthenticated, "the token no longer exists")),
        }
    }

    /// Stores when tokens were last used and which have expired.
    pub(crate) async fn store_token_changes(&self) {
        let changes = self.tokens.changes_to_store();
        if !changes.is_empty()
            && let Err(error) = self.kernel.commit(changes).await
        {
            tracing::warn!(%error, "cannot store the last use and expiry of tokens");
        }
    }

    /// Disables the key immediately; storing the revocation is left to the caller.
    pub(crate) fn revoke_key(&self, id: TokenId) {
        if let Some(token) = self.tokens.find(id) {
            self.tokens.revoke(&token, self.kernel.now());
        }
        self.tokens.forget(id);
    }
}
