//! Reads sessions.

use std::collections::BTreeSet;

use ringback_proto::ids::{ProjectId, SessionId, TokenId, WorkspaceId};
use ringback_proto::money::MicroUsd;
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{SessionChoice, SessionRecord, SessionState, SpendingRecord, UnixMs};
use ringback_proto::request::{ModelUsage, SpendLimits};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::page::{self, Origin, Page, PageStart, RowVisibility};
use crate::error::ReadError;
use crate::row::{Columns, damaged, int, owner_bytes, session_state_int};
use crate::store::Store;

pub(super) const PAGE_OF_ALL: &str = "SELECT n FROM session
    WHERE state = ?1 AND n < ?2 ORDER BY n DESC LIMIT ?3";
pub(super) const PAGE_OF_OWNER: &str = "SELECT n FROM session
    WHERE state = ?1 AND n < ?2 AND owner = ?4 ORDER BY n DESC LIMIT ?3";
pub(super) const PAGE_OF_PROJECT: &str = "SELECT n FROM session
    WHERE state = ?1 AND n < ?2 AND project = ?4 ORDER BY n DESC LIMIT ?3";
pub(super) const PAGE_OF_TREE: &str = "SELECT n FROM session
    WHERE id IN (SELECT session FROM session_tree WHERE ancestor = ?4)
        AND state = ?1 AND n < ?2 AND (?5 IS NULL OR project = ?5)
    ORDER BY n DESC LIMIT ?3";
pub(super) const PAGE_OF_OWNER_IN_PROJECT: &str = "SELECT n FROM session
    WHERE state = ?1 AND n < ?2 AND owner = ?4 AND project = ?5 ORDER BY n DESC LIMIT ?3";

/// The filter of a session list.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionFilter {
    /// Only sessions of this project.
    pub project: Option<ProjectId>,
    /// Only sessions in this state.
    pub state: Option<SessionState>,
    /// Only this session and its descendants, for any reader.
    pub tree: Option<SessionId>,
}

/// A list that a reader's page is assembled from.
enum List<'a> {
    All,
    Owner(&'a PrincipalId),
    Project(&'a ProjectId),
    OwnerInProject(&'a PrincipalId, &'a ProjectId),
    Tree(&'a SessionId, Option<&'a ProjectId>),
}

/// Reads block; async callers go through a blocking pool.
impl Store {
    /// Returns a session by its id.
    pub fn session(&self, id: SessionId) -> Result<Option<SessionRecord>, ReadError> {
        self.readers().read("a session", |connection| {
            let mut select = connection.prepare_cached("SELECT * FROM session WHERE id = ?1")?;
            select.query_row([id.as_bytes()], session).optional()
        })
    }

    /// Returns a page of sessions, newest first.
    pub fn sessions(
        &self,
        visible: &RowVisibility,
        filter: SessionFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<SessionRecord>, ReadError> {
        let before = PageStart::parse(cursor)?;
        let states = filter.state.map_or(SessionState::ALL.to_vec(), |state| vec![state]);
        let lists = match &filter.tree {
            Some(tree) => vec![List::Tree(tree, filter.project.as_ref())],
            None => lists(visible, filter.project.as_ref()),
        };
        self.readers().read("a page of sessions", |connection| {
            let mut numbers = BTreeSet::new();
            for list in &lists {
                for state in &states {
                    list.gather(connection, &mut numbers, *state, before, limit)?;
                }
            }
            page::page(&numbers, limit, |n| {
                let mut select = connection.prepare_cached("SELECT * FROM session WHERE n = ?1")?;
                select.query_row([n], session)
            })
        })
    }

    /// Returns the sessions that were live, oldest first, for the start of the daemon.
    pub fn live_sessions(&self) -> Result<Vec<SessionRecord>, ReadError> {
        self.readers().read("the live sessions", |connection| {
            connection
                .prepare_cached("SELECT * FROM session WHERE state IN (0, 1, 2) ORDER BY n")?
                .query_map([], session)?
                .collect()
        })
    }

    /// Returns at most `limit` sessions that a reader may see and that ended at or before `until`,
    /// oldest first.
    pub fn sessions_over(
        &self,
        visible: &RowVisibility,
        project: Option<ProjectId>,
        until: UnixMs,
        limit: usize,
    ) -> Result<Vec<SessionRecord>, ReadError> {
        self.readers().read("the sessions that are over", |connection| {
            let mut select = connection.prepare_cached(
                "SELECT * FROM session WHERE state IN (3, 4, 5) AND ended_at <= ?1
                     AND (?2 IS NULL OR project = ?2)
                 ORDER BY n",
            )?;
            let params = params![int(until), project.as_ref().map(ProjectId::as_bytes)];
            let mut over = Vec::new();
            for found in select.query_map(params, session)? {
                let found = found?;
                let project = Some(found.project);
                let origin = Origin { owner: found.owner, project, session: Some(found.id) };
                if visible.shows(connection, origin)? {
                    over.push(found);
                }
                if over.len() == limit {
                    break;
                }
            }
            Ok(over)
        })
    }
}

fn lists<'a>(visible: &'a RowVisibility, project: Option<&'a ProjectId>) -> Vec<List<'a>> {
    match (visible, project) {
        (RowVisibility::All, None) => vec![List::All],
        (RowVisibility::All, Some(project)) => vec![List::Project(project)],
        (RowVisibility::Owner { projects, .. }, Some(project)) if projects.contains(project) => {
            vec![List::Project(project)]
        }
        (RowVisibility::Owner { owner, .. }, Some(project)) => {
            vec![List::OwnerInProject(owner, project)]
        }
        (RowVisibility::Owner { owner, projects }, None) => {
            let own = std::iter::once(List::Owner(owner));
            own.chain(projects.iter().map(List::Project)).collect()
        }
        (RowVisibility::Tree { session, .. }, project) => vec![List::Tree(session, project)],
    }
}

impl List<'_> {
    fn gather(
        &self,
        connection: &Connection,
        numbers: &mut BTreeSet<i64>,
        state: SessionState,
        before: PageStart,
        limit: usize,
    ) -> rusqlite::Result<()> {
        let (state, before) = (session_state_int(state), before.0);
        let limit = int(limit as u64).saturating_add(1);
        let mut gather = |sql, params: &[&dyn rusqlite::ToSql]| {
            page::gather(numbers, connection.prepare_cached(sql)?, params)
        };
        match self {
            Self::All => gather(PAGE_OF_ALL, params![state, before, limit]),
            Self::Owner(owner) => {
                gather(PAGE_OF_OWNER, params![state, before, limit, owner_bytes(owner)])
            }
            Self::Project(project) => {
                gather(PAGE_OF_PROJECT, params![state, before, limit, project.as_bytes()])
            }
            Self::OwnerInProject(owner, project) => gather(
                PAGE_OF_OWNER_IN_PROJECT,
                params![state, before, limit, owner_bytes(owner), project.as_bytes()],
            ),
            Self::Tree(session, project) => {
                let project = project.map(ProjectId::as_bytes);
                gather(PAGE_OF_TREE, params![state, before, limit, session.as_bytes(), project])
            }
        }
    }
}

fn session(row: &Row<'_>) -> rusqlite::Result<SessionRecord> {
    Ok(SessionRecord {
        id: row.id("id", SessionId::from_random)?,
        project: row.id("project", ProjectId::from_random)?,
        workspace: row.id("workspace", WorkspaceId::from_random)?,
        owner: row.owner()?,
        parent: row.opt_id("parent", SessionId::from_random)?,
        root: row.id("root", SessionId::from_random)?,
        depth: row.get("depth")?,
        agent: row.get("agent")?,
        state: row.session_state()?,
        created_at: row.u64("created_at")?,
        updated_at: row.u64("updated_at")?,
        ended_at: row.opt_u64("ended_at")?,
        key: row.opt_id("key", TokenId::from_random)?,
        network: row.opt_network()?,
        spending: spending(row)?,
        choice: choice(row)?,
    })
}

fn choice(row: &Row<'_>) -> rusqlite::Result<SessionChoice> {
    let permissions = row.get::<_, Option<String>>("permissions")?;
    let mode = |text: String| text.parse().map_err(|_| damaged("permissions", Type::Text));
    Ok(SessionChoice {
        provider: row.get("provider")?,
        model: row.get("model")?,
        permissions: permissions.map(mode).transpose()?,
    })
}

fn spending(row: &Row<'_>) -> rusqlite::Result<SpendingRecord> {
    let limits = SpendLimits {
        max_tokens: row.opt_u64("max_tokens")?,
        max_time_ms: row.opt_u64("max_time_ms")?,
        max_micro_usd: row.opt_u64("max_micro_usd")?.map(MicroUsd),
    };
    let usage = ModelUsage {
        requests: row.u64("n_requests")?,
        refused: row.u64("n_refused")?,
        bytes_up: row.u64("bytes_up")?,
        bytes_down: row.u64("bytes_down")?,
        input_tokens: row.u64("input_tokens")?,
        output_tokens: row.u64("output_tokens")?,
        estimated: row.get("is_estimated")?,
        unpriced_tokens: row.u64("unpriced_tokens")?,
        cost_micro_usd: row.opt_u64("cost_micro_usd")?.map(MicroUsd),
    };
    Ok(SpendingRecord { limits, usage, working_ms: row.u64("working_ms")? })
}
