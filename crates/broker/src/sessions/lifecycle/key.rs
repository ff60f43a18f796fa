//! The session key: an agent's key to the daemon's own tools. It is created for the session, acts
//! in its own name or as the token that a user passed, and ends with the session.

use std::sync::Arc;

use ringback_core::keys::{self, Grant, Starter};
use ringback_proto::ids::{SessionId, TokenId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::TokenRecord;
use ringback_proto::secret::Secret;
use ringback_proto::{Error, Result};

use crate::identity::{NewKey, Token, new_secret, secret_hash};
use crate::sessions::{Sessions, StartSession};

/// A session key. The secret is kept in memory only.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(in crate::sessions) id: TokenId,
    pub(in crate::sessions) secret: Secret,
}

/// A new session key that is not in use yet.
pub(in crate::sessions) struct NewSessionKey {
    pub(in crate::sessions) key: Key,
    pub(in crate::sessions) record: TokenRecord,
    pub(in crate::sessions) token: Token,
}

impl Sessions {
    /// Creates the key for the agent of a session, if it gets one.
    pub(in crate::sessions) fn session_key(
        &self,
        start: &StartSession,
        session: SessionId,
        owner: PrincipalId,
    ) -> Result<Option<NewSessionKey>> {
        let parents = start.origin.parent().and_then(|parent| self.key_of(parent));
        let starter = match start.origin.parent() {
            Some(_) => Starter::Agent(parents.as_deref().map(|key| key.principal().as_ref())),
            None => Starter::User(&start.principal),
        };
        let (passed, grant) = match &start.key {
            Some(secret) => {
                let token = self.passed_token(secret)?;
                let grant = keys::passed(&start.principal, token.principal())?;
                (Some(token), Some(grant))
            }
            None => (None, keys::made(starter, &start.project)),
        };
        let Some(grant) = grant else { return Ok(None) };
        let starters = match owner {
            PrincipalId::Local => None,
            PrincipalId::Token(id) => self.identity.tokens.find(id),
        };
        let behind = starters.into_iter().chain(parents).collect();
        Ok(Some(self.new_key(session, grant, passed, behind)))
    }

    /// Returns the key of a live session.
    fn key_of(&self, session: SessionId) -> Option<Arc<Token>> {
        let live = self.register.live(session)?;
        self.identity.tokens.find(live.key.as_ref()?.id)
    }

    /// Returns the token that a caller passed. The agent gets a key that acts as it, never the
    /// token itself.
    fn passed_token(&self, secret: &Secret) -> Result<Arc<Token>> {
        let refused = |error: Error| Error::invalid_field("api_key", error.message().to_owned());
        self.identity.tokens.passed(secret.expose(), self.kernel.now()).map_err(refused)
    }

    fn new_key(
        &self,
        session: SessionId,
        Grant { level, target }: Grant,
        passed: Option<Arc<Token>>,
        behind: Vec<Arc<Token>>,
    ) -> NewSessionKey {
        let (secret, public_key) = new_secret(&self.kernel.entropy);
        let record = TokenRecord {
            id: TokenId::from_random(self.kernel.entropy.bytes()),
            name: format!("key of {session}"),
            secret_hash: secret_hash(secret.expose()),
            public_key,
            level,
            target,
            created_at: self.kernel.now().unix,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            session: Some(session),
        };
        let key = Key { id: record.id, secret };
        let token = Token::key(NewKey { record: record.clone(), session, passed, behind });
        NewSessionKey { key, record, token }
    }
}
