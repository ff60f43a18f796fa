//! Writes identities, their hints, tags and connections.

use std::collections::BTreeSet;

use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::record::{ConnectionRecord, HintRecord, IdentityKey, IdentityRecord, UnixMs};
use rusqlite::{Connection, OptionalExtension, params};

use super::ApplyError;
use crate::error::CommitError;
use crate::row::{int, owner_bytes};

/// The most identities of one owner: a studio has dozens of devices.
const IDENTITIES_MAX: u32 = 1000;
/// The most hints of one identity: several of each kind.
const HINTS_MAX: u32 = 64;
/// The most tags of one identity, as of an artifact.
const TAGS_MAX: u32 = 64;
/// The most connections of one owner: several for each identity.
const CONNECTIONS_MAX: u32 = 4000;

pub(super) fn bound(connection: &Connection, identity: &IdentityRecord) -> Result<(), ApplyError> {
    let IdentityRecord { key, name, hints, created_at: at, .. } = identity;
    let small = name.to_lowercase();
    let found = number(connection, key)?;
    hint_room(connection, found, hints)?;
    let n = match found {
        Some(n) => {
            let sql = "UPDATE identity SET name = ?2, name_small = ?3 WHERE n = ?1";
            connection.prepare_cached(sql)?.execute(params![n, name, small])?;
            n
        }
        None => {
            let owner = owner_bytes(&key.owner);
            let sql = "SELECT count(*) FROM identity WHERE owner = ?1";
            let n_own = connection.prepare_cached(sql)?.query_row([owner], |row| row.get(0))?;
            room(n_own, IDENTITIES_MAX, "identities of one owner")?;
            connection
                .prepare_cached(
                    "INSERT INTO identity (owner, project, session, id, name, name_small,
                         created_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![
                    owner,
                    identity.project.as_ref().map(ProjectId::as_bytes),
                    identity.session.as_ref().map(SessionId::as_bytes),
                    key.id,
                    name,
                    small,
                    int(*at),
                ])?;
            connection.last_insert_rowid()
        }
    };
    for hint in hints {
        connection
            .prepare_cached(
                "INSERT INTO identity_hint (identity, kind, value, confidence, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET confidence = excluded.confidence",
            )?
            .execute(params![n, hint.kind.as_str(), hint.value, hint.confidence, int(*at)])?;
    }
    Ok(())
}

/// Refuses hints beyond the limit. Those that an identity has already take no more room.
fn hint_room(
    connection: &Connection,
    identity: Option<i64>,
    hints: &[HintRecord],
) -> Result<(), ApplyError> {
    let mut all: BTreeSet<(String, String)> =
        hints.iter().map(|hint| (hint.kind.as_str().to_owned(), hint.value.clone())).collect();
    if let Some(n) = identity {
        let sql = "SELECT kind, value FROM identity_hint WHERE identity = ?1";
        let mut select = connection.prepare_cached(sql)?;
        for hint in select.query_map([n], |row| Ok((row.get(0)?, row.get(1)?)))? {
            all.insert(hint?);
        }
    }
    let n_hints = u32::try_from(all.len()).unwrap_or(u32::MAX);
    room(n_hints.saturating_sub(1), HINTS_MAX, "hints of an identity")
}

pub(super) fn tagged(
    connection: &Connection,
    identity: &IdentityKey,
    tag: (&str, &str),
    at: UnixMs,
) -> Result<(), ApplyError> {
    let n = existing(connection, identity)?;
    let sql = "SELECT count(*) FROM identity_tag WHERE identity = ?1
               AND NOT (namespace = ?2 AND value = ?3)";
    let n_others =
        connection.prepare_cached(sql)?.query_row(params![n, tag.0, tag.1], |row| row.get(0))?;
    room(n_others, TAGS_MAX, "tags of an identity")?;
    connection
        .prepare_cached(
            "INSERT INTO identity_tag (identity, namespace, value, created_at)
             VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        )?
        .execute(params![n, tag.0, tag.1, int(at)])?;
    Ok(())
}

pub(super) fn connected(connection: &Connection, new: &ConnectionRecord) -> Result<(), ApplyError> {
    let (from, to) = (existing(connection, &new.from)?, existing(connection, &new.to)?);
    let owner = owner_bytes(&new.owner);
    let transport = new.transport.as_deref().unwrap_or_default();
    let ports = params![owner, from, new.from_port, to, new.to_port, transport];
    let is_known: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM identity_connection
                 WHERE owner = ?1 AND from_identity = ?2 AND from_port = ?3 AND to_identity = ?4
                     AND to_port = ?5 AND transport = ?6)",
        )?
        .query_row(ports, |row| row.get(0))?;
    if is_known {
        return Ok(());
    }
    let sql = "SELECT count(*) FROM identity_connection WHERE owner = ?1";
    let n_own = connection.prepare_cached(sql)?.query_row([owner], |row| row.get(0))?;
    room(n_own, CONNECTIONS_MAX, "connections of one owner")?;
    connection
        .prepare_cached(
            "INSERT INTO identity_connection (owner, project, session, from_identity, from_port,
                 to_identity, to_port, transport, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            owner,
            new.project.as_ref().map(ProjectId::as_bytes),
            new.session.as_ref().map(SessionId::as_bytes),
            from,
            new.from_port,
            to,
            new.to_port,
            transport,
            int(new.created_at),
        ])?;
    Ok(())
}

/// Refuses one more beyond the limit.
fn room(n_others: u32, max: u32, what: &'static str) -> Result<(), ApplyError> {
    if n_others < max { Ok(()) } else { Err(CommitError::TooMany { what, max }.into()) }
}

fn existing(connection: &Connection, key: &IdentityKey) -> Result<i64, ApplyError> {
    let missing = || CommitError::NoIdentity { id: key.id.clone() };
    Ok(number(connection, key)?.ok_or_else(missing)?)
}

fn number(connection: &Connection, key: &IdentityKey) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT n FROM identity WHERE owner = ?1 AND id = ?2")?
        .query_row(params![owner_bytes(&key.owner), key.id], |row| row.get(0))
        .optional()
}
