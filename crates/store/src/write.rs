//! Turns records into rows. Every statement that changes something is here.
//!
//! A record is refused before it has changed anything, so only a request whose second or later
//! record is refused needs undoing.

mod artifacts;
mod garden;
mod graph;
mod sessions;

use std::collections::HashMap;

use ringback_proto::ids::{BlobHash, JobId, ProjectId, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{JobEnd, JobRecord, JobState, Record, TokenRecord, UnixMs};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};

use self::artifacts::Upload;
use crate::error::CommitError;
use crate::row::{
    Columns, int, level_int, opt_int, owner_bytes, project_bytes, state_int, target_bytes,
};

/// The store's decision about a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Nothing: the record was complete.
    Written,
    /// An artifact's index in its variation set, if it is in one.
    ArtifactCreated {
        /// The index, from 0.
        variation_index: Option<u32>,
    },
    /// Whether an owner stored content for the first time, and the type given then, unless that was
    /// before types were kept.
    BlobUploaded {
        /// Whether it was the first time.
        is_new: bool,
        /// The type given that time.
        mime_type: Option<String>,
    },
    /// The sessions that were removed with the deleted record.
    SessionsRemoved(Vec<SessionId>),
}

/// Why a record was not written.
#[derive(Debug)]
pub(crate) enum ApplyError {
    /// It conflicts with existing records. Nothing of this record was written.
    Refused(CommitError),
    /// The database failed.
    Database(rusqlite::Error),
}

/// Changes to the counts of jobs, collected over many records and written once.
#[derive(Debug, Default)]
pub(crate) struct Counts(HashMap<(PrincipalId, Option<ProjectId>, JobState), i64>);

/// Live jobs that this writer has written, with row and state, so that their next record needs no
/// lookup. Forgetting any of them only costs a lookup.
#[derive(Debug, Default)]
pub(crate) struct LiveJobs(HashMap<JobId, JobNow>);

/// More than the live jobs within the usual limits; further ones are looked up.
const LIVE_JOBS_MAX: usize = 16_384;

impl LiveJobs {
    /// Forgets all: after a rollback they may be wrong.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    fn keep(&mut self, id: JobId, now: JobNow) {
        if self.0.len() < LIVE_JOBS_MAX {
            self.0.insert(id, now);
        }
    }

    fn take(&mut self, connection: &Connection, id: JobId) -> Result<JobNow, ApplyError> {
        self.0.remove(&id).map_or_else(|| job_now(connection, id), Ok)
    }
}

impl From<rusqlite::Error> for ApplyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<CommitError> for ApplyError {
    fn from(error: CommitError) -> Self {
        Self::Refused(error)
    }
}

impl Counts {
    fn add(&mut self, owner: PrincipalId, project: Option<ProjectId>, state: JobState, by: i64) {
        *self.0.entry((owner, project, state)).or_default() += by;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for ((owner, project, state), by) in other.0 {
            self.add(owner, project, state, by);
        }
    }

    pub(crate) fn write(self, connection: &Connection) -> rusqlite::Result<()> {
        let mut upsert = connection.prepare_cached(
            "INSERT INTO job_count (owner, project, state, jobs) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs",
        )?;
        for ((owner, project, state), by) in self.0.into_iter().filter(|(_, by)| *by != 0) {
            let project = project_bytes(project.as_ref());
            upsert.execute(params![owner_bytes(&owner), project, state_int(state), by])?;
        }
        Ok(())
    }
}

pub(crate) fn apply(
    connection: &Connection,
    record: &Record,
    live: &mut LiveJobs,
    counts: &mut Counts,
) -> Result<WriteOutcome, ApplyError> {
    match record {
        Record::JobCreated(job) => job_created(connection, job, live, counts)?,
        Record::JobStarted { id, at } => job_started(connection, *id, *at, live, counts)?,
        Record::JobEnded { id, end } => job_ended(connection, *id, end, live, counts)?,
        Record::ArtifactCreated(artifact) => return artifacts::created(connection, artifact),
        Record::SourceAdded(source) => artifacts::source_added(connection, source)?,
        Record::AnnotationAdded(annotation) => {
            artifacts::annotation_added(connection, annotation)?;
        }
        Record::IdentityBound(identity) => graph::bound(connection, identity)?,
        Record::IdentityTagged { identity, namespace, value, at } => {
            graph::tagged(connection, identity, (namespace, value), *at)?;
        }
        Record::IdentitiesConnected(new) => graph::connected(connection, new)?,
        Record::TokenCreated(token) => token_created(connection, token)?,
        Record::TokenRevoked { id, at } => {
            let sql = "UPDATE token SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1";
            let n_changed =
                connection.prepare_cached(sql)?.execute(params![id.as_bytes(), int(*at)])?;
            found(n_changed, CommitError::NoToken { id: *id })?;
        }
        Record::TokenUsed { id, at } => {
            let sql = "UPDATE token SET last_used_at = max(?2, coalesce(last_used_at, 0))
                       WHERE id = ?1";
            let n_changed =
                connection.prepare_cached(sql)?.execute(params![id.as_bytes(), int(*at)])?;
            found(n_changed, CommitError::NoToken { id: *id })?;
        }
        Record::BlobUploaded { hash, owner, project, session, mime_type, at } => {
            let (project, session) = (project.as_ref(), session.as_ref());
            let upload = Upload { hash, owner, project, session, mime_type, at: *at };
            return Ok(upload.write(connection)?);
        }
        Record::ProjectCreated(project) => sessions::project_created(connection, project)?,
        Record::ProjectDeleted { id } => return sessions::project_deleted(connection, *id),
        Record::WorkspaceCreated(workspace) => sessions::workspace_created(connection, workspace)?,
        Record::WorkspaceUsed { id, at } => sessions::workspace_used(connection, *id, *at)?,
        Record::WorkspaceDeleted { id } => return sessions::workspace_deleted(connection, *id),
        Record::SessionCreated(session) => sessions::session_created(connection, session)?,
        Record::SessionChanged { id, state, at } => {
            sessions::session_changed(connection, *id, *state, *at)?;
        }
        Record::ProjectPermissions { id, permissions } => {
            sessions::project_permissions(connection, *id, permissions.as_ref())?;
        }
        Record::SessionNetwork { id, network } => {
            sessions::session_network(connection, *id, network)?;
        }
        Record::SessionSpent { id, spending } => {
            sessions::session_spent(connection, *id, spending)?;
        }
        Record::SessionDeleted { id } => return sessions::session_deleted(connection, *id),
        Record::Timeline { revision, change } => garden::changed(connection, *revision, change)?,
        Record::Heard(heard) => garden::heard(connection, heard)?,
    }
    Ok(WriteOutcome::Written)
}

/// Drops expired jobs, oldest first, and returns their ids. A job whose result a region of the
/// garden waits for is kept until the region has it.
pub(crate) fn purge_expired(
    connection: &Connection,
    now: UnixMs,
    limit: usize,
    counts: &mut Counts,
) -> Result<Vec<JobId>, ApplyError> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM job WHERE n IN
             (SELECT n FROM job WHERE expires_at <= ?1
                AND NOT EXISTS (SELECT 1 FROM garden_region
                                WHERE garden_region.job = job.id AND state = 'pending')
              ORDER BY expires_at LIMIT ?2)
         RETURNING id, owner, project, state",
    )?;
    let mut ids = Vec::new();
    let mut rows = delete.query(params![int(now), int(limit as u64)])?;
    while let Some(row) = rows.next()? {
        ids.push(row.id("id", JobId::from_random)?);
        let project = row.opt_id("project", ProjectId::from_random)?;
        counts.add(row.owner()?, project, row.state()?, -1);
    }
    // Those of owners that are gone; the ones this purge empties go with the next.
    connection.prepare_cached("DELETE FROM job_count WHERE jobs = 0")?.execute([])?;
    Ok(ids)
}

fn job_created(
    connection: &Connection,
    job: &JobRecord,
    live: &mut LiveJobs,
    counts: &mut Counts,
) -> Result<(), ApplyError> {
    let inserted = connection
        .prepare_cached(
            "INSERT INTO job (id, owner, project, state, tool, created_at, started_at,
                 completed_at, expires_at, request_id, body_hash, result_blob, error, result,
                 request, session)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?
        .execute(params![
            job.id.as_bytes(),
            owner_bytes(&job.owner),
            job.project.as_ref().map(ProjectId::as_bytes),
            state_int(job.state),
            job.tool,
            int(job.created_at),
            opt_int(job.started_at),
            opt_int(job.completed_at),
            opt_int(job.expires_at),
            job.repeat.as_ref().map(|repeat| repeat.request_id.as_bytes()),
            job.repeat.as_ref().map(|repeat| repeat.body_hash.as_bytes()),
            job.result_blob.as_ref().map(BlobHash::as_bytes),
            job.error.as_deref(),
            job.result.as_deref(),
            &*job.request,
            job.session.as_ref().map(SessionId::as_bytes),
        ]);
    if is_taken(&inserted) {
        return Err(job_taken(connection, job)?.into());
    }
    inserted?;
    counts.add(job.owner, job.project, job.state, 1);
    if !job.state.is_terminal() {
        let n = connection.last_insert_rowid();
        let now = JobNow { n, owner: job.owner, project: job.project, state: job.state };
        live.keep(job.id, now);
    }
    Ok(())
}

fn job_taken(connection: &Connection, job: &JobRecord) -> rusqlite::Result<CommitError> {
    let request_id = job.repeat.as_ref().map(|repeat| repeat.request_id.as_bytes());
    let existing = connection
        .prepare_cached("SELECT id FROM job WHERE owner = ?1 AND request_id = ?2")?
        .query_row(params![owner_bytes(&job.owner), request_id], |row| {
            row.id("id", JobId::from_random)
        })
        .optional()?;
    Ok(match existing {
        Some(existing) => CommitError::Repeated { existing },
        None => CommitError::Taken { what: format!("job {}", job.id) },
    })
}

#[derive(Debug)]
struct JobNow {
    n: i64,
    owner: PrincipalId,
    project: Option<ProjectId>,
    state: JobState,
}

fn job_now(connection: &Connection, id: JobId) -> Result<JobNow, ApplyError> {
    let read = |row: &Row<'_>| {
        Ok(JobNow {
            n: row.get("n")?,
            owner: row.owner()?,
            project: row.opt_id("project", ProjectId::from_random)?,
            state: row.state()?,
        })
    };
    connection
        .prepare_cached("SELECT n, owner, project, state FROM job WHERE id = ?1")?
        .query_row([id.as_bytes()], read)
        .optional()?
        .ok_or_else(|| CommitError::NoJob { id }.into())
}

fn job_started(
    connection: &Connection,
    id: JobId,
    at: UnixMs,
    live: &mut LiveJobs,
    counts: &mut Counts,
) -> Result<(), ApplyError> {
    let JobNow { n, owner, project, state } = live.take(connection, id)?;
    if state != JobState::Pending {
        return Err(CommitError::Stale { id, state }.into());
    }
    connection
        .prepare_cached("UPDATE job SET state = ?2, started_at = ?3 WHERE n = ?1")?
        .execute(params![n, state_int(JobState::Running), int(at)])?;
    counts.add(owner, project, state, -1);
    counts.add(owner, project, JobState::Running, 1);
    live.keep(id, JobNow { n, owner, project, state: JobState::Running });
    Ok(())
}

fn job_ended(
    connection: &Connection,
    id: JobId,
    end: &JobEnd,
    live: &mut LiveJobs,
    counts: &mut Counts,
) -> Result<(), ApplyError> {
    if !end.state.is_terminal() {
        return Err(CommitError::NotAnEnd { id, state: end.state }.into());
    }
    let JobNow { n, owner, project, state } = live.take(connection, id)?;
    if state.is_terminal() {
        return Err(CommitError::Stale { id, state }.into());
    }
    connection
        .prepare_cached(
            "UPDATE job SET state = ?2, completed_at = ?3, expires_at = ?4, result_blob = ?5,
                 error = ?6, result = ?7
             WHERE n = ?1",
        )?
        .execute(params![
            n,
            state_int(end.state),
            int(end.completed_at),
            int(end.expires_at),
            end.result_blob.as_ref().map(BlobHash::as_bytes),
            end.error.as_deref(),
            end.result.as_deref(),
        ])?;
    counts.add(owner, project, state, -1);
    counts.add(owner, project, end.state, 1);
    Ok(())
}

fn token_created(connection: &Connection, token: &TokenRecord) -> Result<(), ApplyError> {
    let inserted = connection
        .prepare_cached(
            "INSERT INTO token (id, name, secret_hash, public_key, level, projects, created_at,
                 expires_at, last_used_at, revoked_at, session)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            token.id.as_bytes(),
            token.name,
            token.secret_hash,
            token.public_key,
            level_int(token.level),
            target_bytes(&token.target),
            int(token.created_at),
            opt_int(token.expires_at),
            opt_int(token.last_used_at),
            opt_int(token.revoked_at),
            token.session.as_ref().map(SessionId::as_bytes),
        ]);
    taken(inserted, || format!("token {}", token.id))
}

fn found(n_changed: usize, otherwise: CommitError) -> Result<(), ApplyError> {
    if n_changed == 0 { Err(otherwise.into()) } else { Ok(()) }
}

fn taken(
    inserted: rusqlite::Result<usize>,
    what: impl FnOnce() -> String,
) -> Result<(), ApplyError> {
    if is_taken(&inserted) {
        return Err(CommitError::Taken { what: what() }.into());
    }
    inserted?;
    Ok(())
}

fn is_taken(inserted: &rusqlite::Result<usize>) -> bool {
    let code = inserted.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
    code == Some(ErrorCode::ConstraintViolation)
}
