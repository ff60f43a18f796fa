//! Tokens: `token_*`.

use super::wire_struct;
use crate::ids::{ProjectId, TokenId};
use crate::principal::Level;
use crate::secret::Secret;

wire_struct! {
    /// A token to make.
    TokenCreateRequest {
        /// What you call it.
        name: String,
        /// How much it may do.
        scope: Level,
        /// Only in these projects; everywhere if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        projects: Option<Vec<ProjectId>>,
        /// After how many seconds it ends; never if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_in: Option<u64>,
    }

    /// The token exists.
    TokenCreatedResponse {
        /// Its public id.
        token_id: TokenId,
        /// The secret. It is shown this once.
        token: Secret,
        /// What you call it.
        name: String,
        /// How much it may do.
        scope: Level,
        /// Only in these projects.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        projects: Option<Vec<ProjectId>>,
        /// When it ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<u64>,
    }

    /// Takes nothing.
    #[derive(Default)]
    TokenListRequest {}

    /// The tokens, oldest first.
    TokenListResponse {
        /// Without their secrets.
        tokens: Vec<TokenInfo>,
    }

    /// One token.
    TokenInfo {
        /// Its public id.
        token_id: TokenId,
        /// What a person calls it.
        name: String,
        /// How much it may do.
        scope: Level,
        /// Only in these projects.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        projects: Option<Vec<ProjectId>>,
        /// When it was made.
        created_at: u64,
        /// When it ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<u64>,
        /// When it was last used, to the minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_used_at: Option<u64>,
        /// When it was revoked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revoked_at: Option<u64>,
    }

    /// Which token to end.
    TokenRevokeRequest {
        /// Its public id.
        token_id: TokenId,
    }
}
