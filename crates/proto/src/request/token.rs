//! Tokens: `token_*`.

use super::wire_struct;
use crate::ids::{ProjectId, TokenId};
use crate::principal::Level;
use crate::secret::Secret;

wire_struct! {
    /// A token to create.
    TokenCreateRequest {
        /// Its name.
        name: String,
        /// Its scope.
        scope: Level,
        /// The projects it is limited to; all projects if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        projects: Option<Vec<ProjectId>>,
        /// Its lifetime in seconds; unlimited if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_in: Option<u64>,
    }

    /// The new token.
    TokenCreatedResponse {
        /// Its public id.
        token_id: TokenId,
        /// The secret. It is shown only once.
        token: Secret,
        /// Its name.
        name: String,
        /// Its scope.
        scope: Level,
        /// The projects it is limited to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        projects: Option<Vec<ProjectId>>,
        /// When it expires.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<u64>,
    }

    /// No input.
    #[derive(Default)]
    TokenListRequest {}

    /// The tokens, oldest first.
    TokenListResponse {
        /// The tokens, without their secrets.
        tokens: Vec<TokenInfo>,
    }

    /// A token.
    TokenInfo {
        /// Its public id.
        token_id: TokenId,
        /// Its name.
        name: String,
        /// Its scope.
        scope: Level,
        /// The projects it is limited to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        projects: Option<Vec<ProjectId>>,
        /// When it was created.
        created_at: u64,
        /// When it expires.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<u64>,
        /// When it was last used, accurate to the minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_used_at: Option<u64>,
        /// When it was revoked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revoked_at: Option<u64>,
    }

    /// The token to revoke.
    TokenRevokeRequest {
        /// Its public id.
        token_id: TokenId,
    }
}
