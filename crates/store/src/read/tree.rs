//! The tree of a session: the session, its children, their children, and so on.

use ringback_proto::ids::{SessionId, WorkspaceId};
use rusqlite::params;

use crate::error::ReadError;
use crate::row::Columns;
use crate::store::Store;

const ANCESTORS: &str = "WITH RECURSIVE up (id, parent) AS (
        SELECT id, parent FROM session WHERE id = ?1
        UNION SELECT session.id, session.parent FROM session JOIN up ON session.id = up.parent)
    SELECT EXISTS (SELECT 1 FROM up WHERE id = ?2)";
const WORKSPACES: &str = "WITH RECURSIVE down (id, workspace) AS (
        SELECT id, workspace FROM session WHERE id = ?1
        UNION SELECT session.id, session.workspace FROM session JOIN down ON session.parent = down.id)
    SELECT DISTINCT workspace FROM down";

/// Reads block; async callers go through a blocking pool.
impl Store {
    /// Returns whether a session is another one, or its descendant.
    pub fn comes_from(&self, id: SessionId, ancestor: SessionId) -> Result<bool, ReadError> {
        self.readers().read("the ancestors of a session", |connection| {
            connection
                .prepare_cached(ANCESTORS)?
                .query_row(params![id.as_bytes(), ancestor.as_bytes()], |row| row.get(0))
        })
    }

    /// Returns the workspaces that a session and its descendants use, or used.
    pub fn workspaces_of_tree(&self, session: SessionId) -> Result<Vec<WorkspaceId>, ReadError> {
        self.readers().read("the workspaces of a tree of sessions", |connection| {
            connection
                .prepare_cached(WORKSPACES)?
                .query_map([session.as_bytes()], |row| {
                    row.id("workspace", WorkspaceId::from_random)
                })?
                .collect()
        })
    }
}
