//! Reads tokens.

use ringback_proto::ids::{SessionId, TokenId};
use ringback_proto::record::TokenRecord;
use rusqlite::Row;

use crate::error::ReadError;
use crate::row::Columns;
use crate::store::Store;

/// Reads block; async callers go through a blocking pool.
impl Store {
    /// Returns all tokens, oldest first, including revoked and expired ones.
    pub fn tokens(&self) -> Result<Vec<TokenRecord>, ReadError> {
        self.readers().read("the tokens", |connection| {
            connection
                .prepare_cached("SELECT * FROM token ORDER BY n")?
                .query_map([], token)?
                .collect()
        })
    }
}

fn token(row: &Row<'_>) -> rusqlite::Result<TokenRecord> {
    Ok(TokenRecord {
        id: row.id("id", TokenId::from_random)?,
        name: row.get("name")?,
        secret_hash: *row.hash("secret_hash")?.as_bytes(),
        public_key: *row.hash("public_key")?.as_bytes(),
        level: row.level()?,
        target: row.target()?,
        created_at: row.u64("created_at")?,
        expires_at: row.opt_u64("expires_at")?,
        last_used_at: row.opt_u64("last_used_at")?,
        revoked_at: row.opt_u64("revoked_at")?,
        session: row.opt_id("session", SessionId::from_random)?,
    })
}
