//! The key to the daemon's own tools that a session's agent has. It is made for the session, acts in
//! its own name or as the token that a user passed, and ends with the session.

use std::sync::Arc;

use ringback_core::keys::{self, Grant, Starter};
use ringback_proto::ids::{SessionId, TokenId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::TokenRecord;
use ringback_proto::secret::Secret;
use ringback_proto::{Error, Result};

use crate::identity::{NewKey, Token, new_secret, secret_hash};
use crate::sessions::{Sessions, StartSession};

/// The key that a session's agent has. It is kept in memory alone.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(in crate::sessions) id: TokenId,
    pub(in crate::sessions) secret: Secret,
}

/// A key that was made just now, and is not in use yet.
pub(in crate::sessions) struct MadeKey {
    pub(in crate::sessions) key: Key,
    pub(in crate::sessions) record: TokenRecord,
    pub(in crate::sessions) token: Token,
}

impl Sessions {
    /// The key the agent of a session gets.
    pub(in crate::sessions) fn session_key(
        &self,
        start: &StartSession,
        session: SessionId,
        owner: PrincipalId,
    ) -> Result<Option<MadeKey>> {
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

    /// The key of a session that is live.
    fn key_of(&self, session: SessionId) -> Option<Arc<Token>> {
        let live = self.register.live(session)?;
        self.identity.tokens.find(live.key.as_ref()?.id)
    }

    /// A token of the caller's own. Its agent gets a key that acts as it, and never the token itself.
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
    ) -> MadeKey {
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
        MadeKey { key, record, token }
    }
}
