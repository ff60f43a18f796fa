//! Projects and their workspaces.

use std::collections::BTreeSet;

use ringback_proto::ids::{ProjectId, WorkspaceId};
use ringback_proto::money::MicroUsd;
use ringback_proto::principal::{KeyLevel, Level};
use ringback_proto::record::{ProjectImage, ProjectRecord, WorkspaceRecord};
use ringback_proto::request::ProjectLimits;
use rusqlite::{OptionalExtension, Row, params};

use super::page::{self, Page, PageStart, RowVisibility};
use crate::error::ReadError;
use crate::row::{Columns, int, owner_bytes};
use crate::store::Store;

// A part of a name is searched row by row: there are far fewer projects than sessions.
pub(super) const PAGE_OF_ALL: &str = "SELECT n FROM project
    WHERE n < ?1 AND (?2 IS NULL OR instr(name_small, ?2) > 0) ORDER BY n DESC LIMIT ?3";
pub(super) const PAGE_OF_OWNER: &str = "SELECT n FROM project
    WHERE owner = ?4 AND n < ?1 AND (?2 IS NULL OR instr(name_small, ?2) > 0)
    ORDER BY n DESC LIMIT ?3";
pub(super) const PAGE_OF_ONE: &str = "SELECT n FROM project
    WHERE id = ?4 AND n < ?1 AND (?2 IS NULL OR instr(name_small, ?2) > 0) LIMIT ?3";

/// Reads block; async callers go through a blocking pool.
impl Store {
    /// Returns a project by its id.
    pub fn project(&self, id: ProjectId) -> Result<Option<ProjectRecord>, ReadError> {
        self.readers().read("a project", |connection| {
            let mut select = connection.prepare_cached("SELECT * FROM project WHERE id = ?1")?;
            select.query_row([id.as_bytes()], project).optional()
        })
    }

    /// Returns a page of projects, newest first, whose names contain a text, ignoring case.
    pub fn projects(
        &self,
        visible: &RowVisibility,
        name_contains: Option<&str>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<ProjectRecord>, ReadError> {
        let before = PageStart::parse(cursor)?.0;
        let part = name_contains.map(str::to_lowercase);
        let limit_int = int(limit as u64).saturating_add(1);
        self.readers().read("a page of projects", |connection| {
            let mut numbers = BTreeSet::new();
            match visible {
                RowVisibility::All => {
                    let params = params![before, part, limit_int];
                    page::gather(&mut numbers, connection.prepare_cached(PAGE_OF_ALL)?, params)?;
                }
                RowVisibility::Owner { owner, projects } => {
                    let params = params![before, part, limit_int, owner_bytes(owner)];
                    page::gather(&mut numbers, connection.prepare_cached(PAGE_OF_OWNER)?, params)?;
                    for id in projects {
                        let params = params![before, part, limit_int, id.as_bytes()];
                        let list = connection.prepare_cached(PAGE_OF_ONE)?;
                        page::gather(&mut numbers, list, params)?;
                    }
                }
                RowVisibility::Tree { owner, .. } => {
                    let params = params![before, part, limit_int, owner_bytes(owner)];
                    page::gather(&mut numbers, connection.prepare_cached(PAGE_OF_OWNER)?, params)?;
                }
            }
            page::page(&numbers, limit, |n| {
                let mut select = connection.prepare_cached("SELECT * FROM project WHERE n = ?1")?;
                select.query_row([n], project)
            })
        })
    }

    /// Returns a workspace by its id.
    pub fn workspace(&self, id: WorkspaceId) -> Result<Option<WorkspaceRecord>, ReadError> {
        self.readers().read("a workspace", |connection| {
            let mut select = connection.prepare_cached("SELECT * FROM workspace WHERE id = ?1")?;
            select.query_row([id.as_bytes()], workspace).optional()
        })
    }

    /// Returns the workspaces of a project, newest first.
    pub fn workspaces(&self, project: ProjectId) -> Result<Vec<WorkspaceRecord>, ReadError> {
        self.readers().read("the workspaces of a project", |connection| {
            connection
                .prepare_cached("SELECT * FROM workspace WHERE project = ?1 ORDER BY n DESC")?
                .query_map([project.as_bytes()], workspace)?
                .collect()
        })
    }
}

fn project(row: &Row<'_>) -> rusqlite::Result<ProjectRecord> {
    Ok(ProjectRecord {
        id: row.id("id", ProjectId::from_random)?,
        name: row.get("name")?,
        description: row.get("description")?,
        owner: row.owner()?,
        agent: row.get("agent")?,
        key_level: key_level(row)?,
        limits: ProjectLimits {
            max_depth: row.get("max_depth")?,
            max_agents: row.get("max_agents")?,
            max_sessions: row.get("max_sessions")?,
            idle_ms: row.opt_u64("idle_ms")?,
            max_tokens: row.opt_u64("max_tokens")?,
            max_time_ms: row.opt_u64("max_time_ms")?,
            max_micro_usd: row.opt_u64("max_micro_usd")?.map(MicroUsd),
        },
        network: row.opt_network()?,
        image: image(row)?,
        permissions: row.opt_permissions()?,
        created_at: row.u64("created_at")?,
    })
}

fn key_level(row: &Row<'_>) -> rusqlite::Result<KeyLevel> {
    Ok(match row.opt_level("key_level")? {
        None => KeyLevel::None,
        Some(Level::Read) => KeyLevel::Read,
        Some(Level::Write | Level::Admin) => KeyLevel::Write,
    })
}

fn image(row: &Row<'_>) -> rusqlite::Result<Option<ProjectImage>> {
    let name: Option<String> = row.get("image_name")?;
    let reference: Option<String> = row.get("image_reference")?;
    Ok(name.map(ProjectImage::Named).or_else(|| reference.map(ProjectImage::Reference)))
}

fn workspace(row: &Row<'_>) -> rusqlite::Result<WorkspaceRecord> {
    Ok(WorkspaceRecord {
        id: row.id("id", WorkspaceId::from_random)?,
        project: row.id("project", ProjectId::from_random)?,
        created_at: row.u64("created_at")?,
        last_session_at: row.opt_u64("last_session_at")?,
    })
}
