//! Projects, workspaces and sessions.

use ringback_proto::ids::{ProjectId, SessionId, TokenId, WorkspaceId};
use ringback_proto::network::NetworkPolicy;
use ringback_proto::permission::{PermissionMode, PermissionPolicy};
use ringback_proto::record::{
    ProjectImage, ProjectRecord, SessionRecord, SessionState, SpendingRecord, UnixMs,
    WorkspaceRecord,
};
use rusqlite::{Connection, Params, params};

use super::{ApplyError, WriteOutcome, found, taken};
use crate::error::CommitError;
use crate::row::{Columns, int, level_int, opt_int, owner_bytes, session_state_int};

const PROJECT: &str = "SELECT EXISTS (SELECT 1 FROM project WHERE id = ?1)";
const NAMED: &str =
    "SELECT EXISTS (SELECT 1 FROM project WHERE owner = ?1 AND name = ?2 AND id <> ?3)";
const WORKSPACE: &str = "SELECT EXISTS (SELECT 1 FROM workspace WHERE id = ?1)";
const WORKSPACE_OF: &str = "SELECT EXISTS (SELECT 1 FROM workspace WHERE id = ?1 AND project = ?2)";
const SESSION: &str = "SELECT EXISTS (SELECT 1 FROM session WHERE id = ?1)";

pub(super) fn project_created(
    connection: &Connection,
    project: &ProjectRecord,
) -> Result<(), ApplyError> {
    let of_owner = params![owner_bytes(&project.owner), project.name, project.id.as_bytes()];
    if connection.prepare_cached(NAMED)?.query_row(of_owner, |row| row.get(0))? {
        return Err(CommitError::SameName.into());
    }
    let (image_name, image_reference) = match &project.image {
        None => (None, None),
        Some(ProjectImage::Named(name)) => (Some(name), None),
        Some(ProjectImage::Reference(reference)) => (None, Some(reference)),
    };
    let inserted = connection
        .prepare_cached(
            "INSERT INTO project (id, name, name_small, description, owner, agent, key_level,
                 max_depth, max_agents, max_sessions, idle_ms, created_at, network,
                 image_name, image_reference, max_tokens, max_time_ms, max_micro_usd, permissions)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 ?18, ?19)",
        )?
        .execute(params![
            project.id.as_bytes(),
            project.name,
            project.name.to_lowercase(),
            project.description,
            owner_bytes(&project.owner),
            project.agent,
            project.key_level.level().map(level_int),
            project.limits.max_depth,
            project.limits.max_agents,
            project.limits.max_sessions,
            opt_int(project.limits.idle_ms),
            int(project.created_at),
            project.network.as_ref().map(ToString::to_string),
            image_name,
            image_reference,
            opt_int(project.limits.max_tokens),
            opt_int(project.limits.max_time_ms),
            opt_int(project.limits.max_micro_usd.map(|max| max.0)),
            project.permissions.as_ref().map(ToString::to_string),
        ]);
    taken(inserted, || format!("project {}", project.id))
}

pub(super) fn project_permissions(
    connection: &Connection,
    id: ProjectId,
    permissions: Option<&PermissionPolicy>,
) -> Result<(), ApplyError> {
    let sql = "UPDATE project SET permissions = ?2 WHERE id = ?1";
    let text = permissions.map(ToString::to_string);
    let n_changed = connection.prepare_cached(sql)?.execute(params![id.as_bytes(), text])?;
    found(n_changed, CommitError::NoProject { id })
}

pub(super) fn project_deleted(
    connection: &Connection,
    id: ProjectId,
) -> Result<WriteOutcome, ApplyError> {
    exists(connection, PROJECT, [id.as_bytes()], CommitError::NoProject { id })?;
    let sessions = resting(
        connection,
        "SELECT id, state FROM session WHERE project = ?1 ORDER BY n",
        id.as_bytes(),
        || format!("project {id}"),
    )?;
    let delete = "DELETE FROM project WHERE id = ?1";
    removed(connection, delete, id.as_bytes(), sessions)
}

pub(super) fn workspace_created(
    connection: &Connection,
    workspace: &WorkspaceRecord,
) -> Result<(), ApplyError> {
    let project = workspace.project;
    exists(connection, PROJECT, [project.as_bytes()], CommitError::NoProject { id: project })?;
    let inserted = connection
        .prepare_cached(
            "INSERT INTO workspace (id, project, created_at, last_session_at)
             VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            workspace.id.as_bytes(),
            project.as_bytes(),
            int(workspace.created_at),
            opt_int(workspace.last_session_at),
        ]);
    taken(inserted, || format!("workspace {}", workspace.id))
}

pub(super) fn workspace_used(
    connection: &Connection,
    id: WorkspaceId,
    at: UnixMs,
) -> Result<(), ApplyError> {
    let sql = "UPDATE workspace SET last_session_at = max(?2, coalesce(last_session_at, 0))
               WHERE id = ?1";
    let n_changed = connection.prepare_cached(sql)?.execute(params![id.as_bytes(), int(at)])?;
    found(n_changed, CommitError::NoWorkspace { id })
}

pub(super) fn workspace_deleted(
    connection: &Connection,
    id: WorkspaceId,
) -> Result<WriteOutcome, ApplyError> {
    exists(connection, WORKSPACE, [id.as_bytes()], CommitError::NoWorkspace { id })?;
    let sessions = resting(
        connection,
        "SELECT id, state FROM session WHERE workspace = ?1 ORDER BY n",
        id.as_bytes(),
        || format!("workspace {id}"),
    )?;
    let delete = "DELETE FROM workspace WHERE id = ?1";
    removed(connection, delete, id.as_bytes(), sessions)
}

pub(super) fn session_created(
    connection: &Connection,
    session: &SessionRecord,
) -> Result<(), ApplyError> {
    let (project, workspace) = (session.project, session.workspace);
    exists(connection, PROJECT, [project.as_bytes()], CommitError::NoProject { id: project })?;
    let place = [workspace.as_bytes(), project.as_bytes()];
    exists(connection, WORKSPACE_OF, place, CommitError::NoWorkspace { id: workspace })?;
    let inserted = connection
        .prepare_cached(
            "INSERT INTO session (id, project, workspace, owner, parent, root, depth, agent, state,
                 created_at, updated_at, ended_at, key, network, max_tokens, max_time_ms,
                 max_micro_usd, provider, model, permissions)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 ?18, ?19, ?20)",
        )?
        .execute(params![
            session.id.as_bytes(),
            project.as_bytes(),
            workspace.as_bytes(),
            owner_bytes(&session.owner),
            session.parent.as_ref().map(SessionId::as_bytes),
            session.root.as_bytes(),
            session.depth,
            session.agent,
            session_state_int(session.state),
            int(session.created_at),
            int(session.updated_at),
            opt_int(session.ended_at),
            session.key.as_ref().map(TokenId::as_bytes),
            session.network.as_ref().map(ToString::to_string),
            opt_int(session.spending.limits.max_tokens),
            opt_int(session.spending.limits.max_time_ms),
            opt_int(session.spending.limits.max_micro_usd.map(|max| max.0)),
            session.choice.provider,
            session.choice.model,
            session.choice.permissions.map(PermissionMode::name),
        ]);
    taken(inserted, || format!("session {}", session.id))?;
    connection
        .prepare_cached(
            "INSERT INTO session_tree (ancestor, session)
             SELECT ancestor, ?1 FROM session_tree WHERE session = ?2 UNION SELECT ?1, ?1",
        )?
        .execute(params![
            session.id.as_bytes(),
            session.parent.as_ref().map(SessionId::as_bytes)
        ])?;
    session_spent(connection, session.id, &session.spending)
}

pub(super) fn session_changed(
    connection: &Connection,
    id: SessionId,
    state: SessionState,
    at: UnixMs,
) -> Result<(), ApplyError> {
    let sql = "UPDATE session SET state = ?2, updated_at = ?3, ended_at = ?4 WHERE id = ?1";
    let ended_at = (!state.is_live()).then(|| int(at));
    let n_changed = connection.prepare_cached(sql)?.execute(params![
        id.as_bytes(),
        session_state_int(state),
        int(at),
        ended_at
    ])?;
    found(n_changed, CommitError::NoSession { id })
}

pub(super) fn session_network(
    connection: &Connection,
    id: SessionId,
    network: &NetworkPolicy,
) -> Result<(), ApplyError> {
    let sql = "UPDATE session SET network = ?2 WHERE id = ?1";
    let n_changed =
        connection.prepare_cached(sql)?.execute(params![id.as_bytes(), network.to_string()])?;
    found(n_changed, CommitError::NoSession { id })
}

/// Keeps the larger of each pair of numbers. An unlimited value stays unlimited.
pub(super) fn session_spent(
    connection: &Connection,
    id: SessionId,
    spending: &SpendingRecord,
) -> Result<(), ApplyError> {
    let SpendingRecord { limits, usage, working_ms } = spending;
    let sql = "UPDATE session SET
            max_tokens = COALESCE(MAX(max_tokens, ?2), max_tokens),
            max_time_ms = COALESCE(MAX(max_time_ms, ?3), max_time_ms),
            max_micro_usd = COALESCE(MAX(max_micro_usd, ?4), max_micro_usd),
            n_requests = MAX(n_requests, ?5),
            n_refused = MAX(n_refused, ?6),
            bytes_up = MAX(bytes_up, ?7),
            bytes_down = MAX(bytes_down, ?8),
            input_tokens = MAX(input_tokens, ?9),
            output_tokens = MAX(output_tokens, ?10),
            is_estimated = MAX(is_estimated, ?11),
            unpriced_tokens = MAX(unpriced_tokens, ?12),
            cost_micro_usd = COALESCE(MAX(cost_micro_usd, ?13), cost_micro_usd, ?13),
            working_ms = MAX(working_ms, ?14)
        WHERE id = ?1";
    let n_changed = connection.prepare_cached(sql)?.execute(params![
        id.as_bytes(),
        opt_int(limits.max_tokens),
        opt_int(limits.max_time_ms),
        opt_int(limits.max_micro_usd.map(|max| max.0)),
        int(usage.requests),
        int(usage.refused),
        int(usage.bytes_up),
        int(usage.bytes_down),
        int(usage.input_tokens),
        int(usage.output_tokens),
        usage.estimated,
        int(usage.unpriced_tokens),
        opt_int(usage.cost_micro_usd.map(|cost| cost.0)),
        int(*working_ms),
    ])?;
    found(n_changed, CommitError::NoSession { id })
}

pub(super) fn session_deleted(
    connection: &Connection,
    id: SessionId,
) -> Result<WriteOutcome, ApplyError> {
    exists(connection, SESSION, [id.as_bytes()], CommitError::NoSession { id })?;
    let sql = "SELECT id, state FROM session WHERE id = ?1";
    let sessions = resting(connection, sql, id.as_bytes(), || format!("session {id}"))?;
    removed(connection, "DELETE FROM session WHERE id = ?1", id.as_bytes(), sessions)
}

fn exists(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    otherwise: CommitError,
) -> Result<(), ApplyError> {
    let exists: bool = connection.prepare_cached(sql)?.query_row(params, |row| row.get(0))?;
    if exists { Ok(()) } else { Err(otherwise.into()) }
}

/// Returns the sessions that would be deleted, if none of them is live.
fn resting(
    connection: &Connection,
    sql: &str,
    of: &[u8; 16],
    what: impl FnOnce() -> String,
) -> Result<Vec<SessionId>, ApplyError> {
    let mut select = connection.prepare_cached(sql)?;
    let sessions = select
        .query_map([of], |row| Ok((row.id("id", SessionId::from_random)?, row.session_state()?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    match sessions.iter().find(|(_, state)| state.is_live()) {
        Some((session, _)) => Err(CommitError::InUse { what: what(), session: *session }.into()),
        None => Ok(sessions.into_iter().map(|(id, _)| id).collect()),
    }
}

/// Deletes a row with its sessions, and the keys made for them.
fn removed(
    connection: &Connection,
    sql: &str,
    id: &[u8; 16],
    sessions: Vec<SessionId>,
) -> Result<WriteOutcome, ApplyError> {
    let mut keys = connection.prepare_cached("DELETE FROM token WHERE session = ?1")?;
    let mut trees = connection.prepare_cached("DELETE FROM session_tree WHERE ancestor = ?1")?;
    for session in &sessions {
        keys.execute([session.as_bytes()])?;
        trees.execute([session.as_bytes()])?;
    }
    connection.prepare_cached(sql)?.execute([id])?;
    Ok(WriteOutcome::SessionsRemoved(sessions))
}
