//! The key to the daemon's own tools that a session's agent has: made for the session, or passed by
//! whoever started it.

use ringback_core::policy;
use ringback_proto::ids::{SessionId, TokenId};
use ringback_proto::principal::{PrincipalId, Target};
use ringback_proto::record::TokenRecord;
use ringback_proto::secret::Secret;
use ringback_proto::{Error, Result};

use super::StartSession;
use crate::identity::{new_secret, secret_hash};
use crate::shared::Shared;

/// The key that a session's agent has. It is kept in memory alone.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(super) id: TokenId,
    pub(super) secret: Secret,
    /// Whether it was made for this session, and ends with it.
    pub(super) is_made_for_it: bool,
}

impl Shared {
    /// The key the agent of a session gets, and the record of it if it was made just now.
    pub(super) fn session_key(
        &self,
        start: &StartSession,
        session: SessionId,
    ) -> Result<Option<(Key, Option<TokenRecord>)>> {
        match &start.key {
            Some(secret) => self.passed_key(start, secret).map(|key| Some((key, None))),
            None => Ok(self.made_key(start, session)),
        }
    }

    /// A token of the caller's own. That it can be shown is not enough: through its agent nobody
    /// does more than as themselves.
    fn passed_key(&self, start: &StartSession, secret: &Secret) -> Result<Key> {
        let now = self.now();
        let refused = |error: Error| Error::invalid_field("api_key", error.message().to_owned());
        let credential = self.tokens.authenticate(secret.expose(), now).map_err(refused)?;
        let owner = credential.principal(now).map_err(refused)?;
        policy::may_grant(&start.principal, owner.level, &owner.target)?;
        let PrincipalId::Token(id) = owner.id else {
            return Err(Error::invalid_field("api_key", "this is no token"));
        };
        Ok(Key { id, secret: secret.clone(), is_made_for_it: false })
    }

    /// As the project says, never more than its creator has, for this session alone.
    fn made_key(
        &self,
        start: &StartSession,
        session: SessionId,
    ) -> Option<(Key, Option<TokenRecord>)> {
        let level = start.project.key_level?.min(start.principal.level);
        let (secret, public_key) = new_secret(&self.entropy);
        let record = TokenRecord {
            id: TokenId::from_random(self.entropy.bytes()),
            name: format!("key of {session}"),
            secret_hash: secret_hash(secret.expose()),
            public_key,
            level,
            target: Target::Projects(vec![start.project.id]),
            created_at: self.now().unix,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            session: Some(session),
        };
        Some((Key { id: record.id, secret, is_made_for_it: true }, Some(record)))
    }
}
