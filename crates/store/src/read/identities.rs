//! Reads identities, and what they are connected to.

use std::collections::BTreeSet;

use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{ConnectionRecord, HintRecord, IdentityKey, IdentityRecord};
use ringback_proto::request::HintKind;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::graph::Graph;
use super::page::{self, Origin, Page, PageStart, RowVisibility};
use crate::error::ReadError;
use crate::row::{Columns, owner_bytes};

const IDENTITY: &str = "SELECT * FROM identity WHERE n = ?1";
pub(super) const OWN: &str = "SELECT n FROM identity WHERE owner = ?1 AND id = ?2";
pub(super) const NAMED: &str = "SELECT n FROM identity WHERE id = ?1 ORDER BY n DESC";
pub(super) const OF_ALL: &str = "SELECT n FROM identity WHERE n < ?1 ORDER BY n DESC";
pub(super) const OF_OWNER: &str = "SELECT n FROM identity
    WHERE n < ?1 AND owner = ?2 ORDER BY n DESC";
pub(super) const OF_PROJECT: &str = "SELECT n FROM identity
    WHERE n < ?1 AND project = ?2 ORDER BY n DESC";
pub(super) const OF_SESSION: &str = "SELECT n FROM identity
    WHERE n < ?1 AND session = ?2 ORDER BY n DESC";
pub(super) const WITH_HINT: &str = "SELECT identity FROM identity_hint
    WHERE kind = ?1 AND value = ?2 AND identity < ?3 ORDER BY identity DESC";
pub(super) const TAGGED: &str = "SELECT EXISTS (SELECT 1 FROM identity_tag
    WHERE identity = ?1 AND (?2 IS NULL OR namespace = ?2) AND (?3 IS NULL OR value = ?3))";
pub(super) const CONNECTED: &str = "SELECT * FROM identity_connection
    WHERE from_identity = ?1 ORDER BY n DESC";
pub(super) const CONNECTION: &str = "SELECT * FROM identity_connection
    WHERE owner = ?1 AND from_identity = ?2 AND from_port = ?3 AND to_identity = ?4
        AND to_port = ?5 AND transport = ?6";

/// The filter of a list of identities.
#[derive(Debug, Clone, Default)]
pub struct IdentityFilter {
    /// Only those whose name contains this text, ignoring case.
    pub name: Option<String>,
    /// Only those with a tag of this namespace.
    pub tag_namespace: Option<String>,
    /// Only those with a tag of this value.
    pub tag_value: Option<String>,
    /// If there are any: only those with one of these hints.
    pub hints: Vec<(HintKind, String)>,
}

/// What an id means to a reader.
#[derive(Debug, Clone, PartialEq)]
pub enum NamedIdentity {
    /// Nothing that the reader sees.
    Unknown,
    /// The reader's own, or the only one that it sees.
    Known(IdentityRecord),
    /// Several that belong to others.
    Ambiguous,
}

impl Graph<'_> {
    /// Returns what an id means to a reader: its own identity, else the only one that it sees.
    pub fn identity(
        self,
        id: &str,
        reader: &PrincipalId,
        visible: &RowVisibility,
    ) -> Result<NamedIdentity, ReadError> {
        self.0.readers().read("an identity", |connection| {
            let own: Option<i64> = connection
                .prepare_cached(OWN)?
                .query_row(params![owner_bytes(reader), id], |row| row.get(0))
                .optional()?;
            if let Some(n) = own {
                return Ok(NamedIdentity::Known(identity(connection, n)?));
            }
            let mut found = NamedIdentity::Unknown;
            let mut select = connection.prepare_cached(NAMED)?;
            let mut rows = select.query([id])?;
            while let Some(row) = rows.next()? {
                let other = identity(connection, row.get("n")?)?;
                if visible.shows(connection, origin(&other))? {
                    if found != NamedIdentity::Unknown {
                        return Ok(NamedIdentity::Ambiguous);
                    }
                    found = NamedIdentity::Known(other);
                }
            }
            Ok(found)
        })
    }

    /// Returns a page of identities that a reader sees, newest first.
    pub fn identities(
        self,
        visible: &RowVisibility,
        filter: &IdentityFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<IdentityRecord>, ReadError> {
        let before = PageStart::parse(cursor)?.0;
        let part = filter.name.as_deref().map(str::to_lowercase);
        self.0.readers().read("a page of identities", |connection| {
            let mut numbers = BTreeSet::new();
            for mut list in lists(connection, visible, filter, before)? {
                // Each list is searched until it has one more than the page.
                let mut n_found = 0;
                while n_found <= limit
                    && let Some(n) = list.next()
                {
                    if matches(connection, visible, filter, part.as_deref(), n)? {
                        numbers.insert(n);
                        n_found += 1;
                    }
                }
            }
            page::page(&numbers, limit, |n| identity(connection, n))
        })
    }

    /// Returns at most `limit` connections from an identity that a reader sees, to identities that
    /// it sees, newest first.
    pub fn connections_from(
        self,
        from: &IdentityKey,
        visible: &RowVisibility,
        limit: usize,
    ) -> Result<Vec<ConnectionRecord>, ReadError> {
        self.0.readers().read("the connections of an identity", |connection| {
            let Some(n) = number(connection, from)? else { return Ok(Vec::new()) };
            let mut select = connection.prepare_cached(CONNECTED)?;
            let mut rows = select.query([n])?;
            let mut found = Vec::new();
            while found.len() < limit
                && let Some(row) = rows.next()?
            {
                let to = identity(connection, row.get("to_identity")?)?;
                let made = made(row, from.clone(), to.key.clone())?;
                let itself =
                    Origin { owner: made.owner, project: made.project, session: made.session };
                if visible.shows(connection, origin(&to))? && visible.shows(connection, itself)? {
                    found.push(made);
                }
            }
            Ok(found)
        })
    }

    /// Returns a connection as it is stored.
    pub fn connection(
        self,
        wanted: &ConnectionRecord,
    ) -> Result<Option<ConnectionRecord>, ReadError> {
        self.0.readers().read("a connection", |connection| {
            let ends = (number(connection, &wanted.from)?, number(connection, &wanted.to)?);
            let (Some(from), Some(to)) = ends else { return Ok(None) };
            let transport = wanted.transport.as_deref().unwrap_or_default();
            connection
                .prepare_cached(CONNECTION)?
                .query_row(
                    params![
                        owner_bytes(&wanted.owner),
                        from,
                        wanted.from_port,
                        to,
                        wanted.to_port,
                        transport
                    ],
                    |row| made(row, wanted.from.clone(), wanted.to.clone()),
                )
                .optional()
        })
    }
}

/// Returns the numbers of identities to look at, in lists that are newest first.
fn lists(
    connection: &Connection,
    visible: &RowVisibility,
    filter: &IdentityFilter,
    before: i64,
) -> rusqlite::Result<Vec<std::vec::IntoIter<i64>>> {
    let list = |sql, params: &[&dyn rusqlite::ToSql]| -> rusqlite::Result<_> {
        let mut select = connection.prepare_cached(sql)?;
        let numbers = select.query_map(params, |row| row.get(0))?;
        Ok(numbers.collect::<rusqlite::Result<Vec<i64>>>()?.into_iter())
    };
    if !filter.hints.is_empty() {
        let hints = filter.hints.iter();
        return hints
            .map(|(kind, value)| list(WITH_HINT, params![kind.as_str(), value, before]))
            .collect();
    }
    match visible {
        RowVisibility::All => Ok(vec![list(OF_ALL, params![before])?]),
        RowVisibility::Owner { owner, projects } => {
            let own = std::iter::once(list(OF_OWNER, params![before, owner_bytes(owner)]));
            let others = projects
                .iter()
                .map(|project| list(OF_PROJECT, params![before, project.as_bytes()]));
            own.chain(others).collect()
        }
        RowVisibility::Tree { owner, session } => {
            let own = std::iter::once(list(OF_OWNER, params![before, owner_bytes(owner)]));
            let sql = "SELECT session FROM session_tree WHERE ancestor = ?1";
            let tree = connection
                .prepare_cached(sql)?
                .query_map([session.as_bytes()], |row| row.id("session", SessionId::from_random))?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let others =
                tree.iter().map(|session| list(OF_SESSION, params![before, session.as_bytes()]));
            own.chain(others).collect()
        }
    }
}

fn matches(
    connection: &Connection,
    visible: &RowVisibility,
    filter: &IdentityFilter,
    part: Option<&str>,
    n: i64,
) -> rusqlite::Result<bool> {
    let (small, from) = connection.prepare_cached(IDENTITY)?.query_row([n], |row| {
        let (project, session) = (
            row.opt_id("project", ProjectId::from_random)?,
            row.opt_id("session", SessionId::from_random)?,
        );
        let origin = Origin { owner: row.owner()?, project, session };
        Ok((row.get::<_, String>("name_small")?, origin))
    })?;
    if part.is_some_and(|part| !small.contains(part)) || !visible.shows(connection, from)? {
        return Ok(false);
    }
    if filter.tag_namespace.is_none() && filter.tag_value.is_none() {
        return Ok(true);
    }
    connection
        .prepare_cached(TAGGED)?
        .query_row(params![n, filter.tag_namespace, filter.tag_value], |row| row.get(0))
}

const fn origin(identity: &IdentityRecord) -> Origin {
    Origin { owner: identity.key.owner, project: identity.project, session: identity.session }
}

fn number(connection: &Connection, key: &IdentityKey) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(OWN)?
        .query_row(params![owner_bytes(&key.owner), key.id], |row| row.get(0))
        .optional()
}

/// Returns an identity with its hints and tags.
fn identity(connection: &Connection, n: i64) -> rusqlite::Result<IdentityRecord> {
    let hint = |row: &Row<'_>| {
        Ok(HintRecord {
            kind: row.name("kind", &HintKind::ALL, HintKind::as_str)?,
            value: row.get("value")?,
            confidence: row.get("confidence")?,
        })
    };
    let hints = connection
        .prepare_cached("SELECT * FROM identity_hint WHERE identity = ?1 ORDER BY kind, value")?
        .query_map([n], hint)?
        .collect::<rusqlite::Result<_>>()?;
    let tags = connection
        .prepare_cached("SELECT * FROM identity_tag WHERE identity = ?1 ORDER BY namespace, value")?
        .query_map([n], |row| Ok((row.get("namespace")?, row.get("value")?)))?
        .collect::<rusqlite::Result<_>>()?;
    connection.prepare_cached(IDENTITY)?.query_row([n], |row| {
        Ok(IdentityRecord {
            key: IdentityKey { owner: row.owner()?, id: row.get("id")? },
            project: row.opt_id("project", ProjectId::from_random)?,
            session: row.opt_id("session", SessionId::from_random)?,
            name: row.get("name")?,
            hints,
            tags,
            created_at: row.u64("created_at")?,
        })
    })
}

fn made(row: &Row<'_>, from: IdentityKey, to: IdentityKey) -> rusqlite::Result<ConnectionRecord> {
    let transport: String = row.get("transport")?;
    Ok(ConnectionRecord {
        owner: row.owner()?,
        project: row.opt_id("project", ProjectId::from_random)?,
        session: row.opt_id("session", SessionId::from_random)?,
        from,
        from_port: row.get("from_port")?,
        to,
        to_port: row.get("to_port")?,
        transport: Some(transport).filter(|transport| !transport.is_empty()),
        created_at: row.u64("created_at")?,
    })
}
