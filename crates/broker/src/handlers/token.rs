//! Tokens: `token_*`.

use std::sync::Arc;

use ringback_core::policy::may_grant;
use ringback_proto::ids::TokenId;
use ringback_proto::principal::{Level, Principal, PrincipalId, Target};
use ringback_proto::record::{Record, TokenRecord};
use ringback_proto::request::{
    AckResponse, TokenCreateRequest, TokenCreatedResponse, TokenInfo, TokenListRequest,
    TokenListResponse, TokenRevokeRequest,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, Result};

use super::{Native, check_text};
use crate::failure;
use crate::handler::{Context, Handler};
use crate::identity::{Identity, Token, new_secret, secret_hash};

/// The most characters of a token's name.
const NAME_CHARS_MAX: usize = 100;
/// The most tokens: all of them are kept in memory.
const TOKENS_MAX: usize = 10_000;

impl Handler<tools::TokenCreate> for Native {
    async fn handle(ctx: Context, request: TokenCreateRequest) -> Result<TokenCreatedResponse> {
        may_grant(&ctx.principal, request.scope, &target(&request))?;
        ctx.rooms.identity.create_token(request).await
    }
}

impl Handler<tools::TokenList> for Native {
    async fn handle(ctx: Context, _: TokenListRequest) -> Result<TokenListResponse> {
        let mut tokens = ctx.rooms.identity.tokens.list();
        tokens.retain(|token| may_grant(&ctx.principal, token.level, &token.target).is_ok());
        let tokens = tokens.into_iter().map(token_info).collect();
        Ok(TokenListResponse { tokens })
    }
}

impl Handler<tools::TokenRevoke> for Native {
    async fn handle(ctx: Context, request: TokenRevokeRequest) -> Result<AckResponse> {
        let id = request.token_id;
        let (rooms, now) = (&ctx.rooms, ctx.now());
        // A token that the caller could not have made counts as not found.
        let within = |token: &Arc<Token>| {
            let Principal { level, target, .. } = token.principal().as_ref();
            may_grant(&ctx.principal, *level, target).is_ok()
        };
        let token = rooms.identity.tokens.find(id).filter(within);
        let token = token.ok_or_else(|| Error::not_found("token", id))?;
        // In memory first: if the write fails, the token stays invalid until a restart, with the
        // keys of the agents that it started, and the caller learns that it must try again.
        rooms.identity.tokens.revoke(&token, now);
        let ending = Arc::clone(&rooms.sessions);
        let ended = rooms.kernel.tasks.spawn(async move {
            let why = "the token that started it was revoked";
            ending.end_sessions_of(PrincipalId::Token(id), why).await;
        });
        ctx.commit(vec![Record::TokenRevoked { id, at: now.unix }]).await?;
        ended.await.map_err(failure::internal)?;
        Ok(AckResponse { message: format!("{id} is revoked") })
    }
}

impl Identity {
    pub(crate) async fn create_token(
        &self,
        request: TokenCreateRequest,
    ) -> Result<TokenCreatedResponse> {
        check_text("name", &request.name, NAME_CHARS_MAX)?;
        if self.tokens.list().len() >= TOKENS_MAX {
            return Err(Error::busy("the list of tokens"));
        }
        let target = target(&request);
        let TokenCreateRequest { name, scope, projects, expires_in } = request;
        let now = self.kernel.now().unix;
        let (secret, public_key) = new_secret(&self.kernel.entropy);
        let expires_at = expires_in.map(|secs| now.saturating_add(secs.saturating_mul(1000)));
        let record = TokenRecord {
            id: TokenId::from_random(self.kernel.entropy.bytes()),
            name: name.clone(),
            secret_hash: secret_hash(secret.expose()),
            public_key,
            level: scope,
            target,
            created_at: now,
            expires_at,
            last_used_at: None,
            revoked_at: None,
            session: None,
        };
        self.kernel.commit(vec![Record::TokenCreated(record.clone())]).await?;
        let token_id = record.id;
        self.tokens.insert(record);
        Ok(TokenCreatedResponse { token_id, token: secret, name, scope, projects, expires_at })
    }
}

/// Returns the first token of a new data directory.
pub(crate) fn first_token() -> TokenCreateRequest {
    let name = "first".to_owned();
    TokenCreateRequest { name, scope: Level::Admin, projects: None, expires_in: None }
}

fn target(request: &TokenCreateRequest) -> Target {
    request.projects.clone().map_or(Target::Everything, Target::Projects)
}

fn token_info(record: TokenRecord) -> TokenInfo {
    let projects = match record.target {
        Target::Everything => None,
        Target::Projects(projects) => Some(projects),
    };
    TokenInfo {
        token_id: record.id,
        name: record.name,
        scope: record.level,
        projects,
        created_at: record.created_at,
        expires_at: record.expires_at,
        last_used_at: record.last_used_at,
        revoked_at: record.revoked_at,
    }
}
