//! Reads jobs.

use std::collections::BTreeSet;

use ringback_proto::ids::{BlobHash, JobId, ProjectId, RequestId, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{JobRecord, JobState, RepeatKey, UnixMs};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::page::{self, Origin, Page, PageStart, RowVisibility};
use crate::error::ReadError;
use crate::row::{Columns, int, owner_bytes, state_int};
use crate::store::Store;

pub(super) const PAGE_OF_ALL: &str = "SELECT n FROM job WHERE n < ?1 ORDER BY n DESC LIMIT ?2";
pub(super) const PAGE_OF_STATE: &str =
    "SELECT n FROM job WHERE state = ?1 AND n < ?2 ORDER BY n DESC LIMIT ?3";
pub(super) const PAGE_OF_OWNER: &str = "SELECT n FROM job
    WHERE owner = ?1 AND state = ?2 AND n < ?3 ORDER BY n DESC LIMIT ?4";
pub(super) const PAGE_OF_PROJECT: &str = "SELECT n FROM job
    WHERE project = ?1 AND state = ?2 AND n < ?3 ORDER BY n DESC LIMIT ?4";

pub(super) const PAGE_OF_SESSION: &str = "SELECT n FROM job
    WHERE session = ?1 AND state = ?2 AND n < ?3 ORDER BY n DESC LIMIT ?4";
const SESSIONS_OF_TREE: &str = "SELECT session FROM session_tree WHERE ancestor = ?1";
const COUNTS_OF_TREE: &str = "SELECT state, count(*) AS jobs FROM job
    WHERE session IN (SELECT session FROM session_tree WHERE ancestor = ?1) OR owner = ?2
    GROUP BY state";

/// A job without its request and result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSummary {
    /// Its id.
    pub id: JobId,
    /// The tool's name.
    pub tool: String,
    /// Its owner.
    pub owner: PrincipalId,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// Its state.
    pub state: JobState,
    /// The error as MsgPack, once failed or cancelled.
    pub error: Option<bytes::Bytes>,
    /// When it was accepted.
    pub created_at: UnixMs,
    /// When it started to run.
    pub started_at: Option<UnixMs>,
    /// When it ended.
    pub completed_at: Option<UnixMs>,
}

/// The number of jobs in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobCounts([u64; JobState::ALL.len()]);

impl JobCounts {
    /// Returns the number of jobs in one state.
    #[must_use]
    pub fn get(&self, state: JobState) -> u64 {
        JobState::ALL.into_iter().zip(self.0).find(|(s, _)| *s == state).map_or(0, |(_, n)| n)
    }

    /// Returns the total number of jobs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Reads block; async callers go through a blocking pool.
impl Store {
    /// Returns a job by its id.
    pub fn job(&self, id: JobId) -> Result<Option<JobRecord>, ReadError> {
        self.readers().read("a job", |connection| {
            let mut select = connection.prepare_cached("SELECT * FROM job WHERE id = ?1")?;
            select.query_row([id.as_bytes()], job).optional()
        })
    }

    /// Returns a job by its id, if a reader may see it.
    pub fn visible_job(
        &self,
        id: JobId,
        visible: &RowVisibility,
    ) -> Result<Option<JobRecord>, ReadError> {
        self.readers().read("a job", |connection| {
            let mut select = connection.prepare_cached("SELECT * FROM job WHERE id = ?1")?;
            let found = select.query_row([id.as_bytes()], job).optional()?;
            let origin = |job: &JobRecord| Origin {
                owner: job.owner,
                project: job.project,
                session: job.session,
            };
            Ok(match found {
                Some(found) if visible.shows(connection, origin(&found))? => Some(found),
                Some(_) | None => None,
            })
        })
    }

    /// Returns the job that an owner's request created, if any.
    pub fn job_by_repeat(
        &self,
        owner: PrincipalId,
        request_id: RequestId,
    ) -> Result<Option<JobRecord>, ReadError> {
        self.readers().read("a job", |connection| {
            connection
                .prepare_cached("SELECT * FROM job WHERE owner = ?1 AND request_id = ?2")?
                .query_row(params![owner_bytes(&owner), request_id.as_bytes()], job)
                .optional()
        })
    }

    /// Returns a page of jobs, newest first, in one state or all.
    pub fn jobs(
        &self,
        visible: &RowVisibility,
        state: Option<JobState>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<JobSummary>, ReadError> {
        let before = PageStart::parse(cursor)?;
        self.readers().read("a page of jobs", |connection| {
            let numbers = match visible {
                RowVisibility::All => numbers_of_all(connection, state, before, limit)?,
                RowVisibility::Owner { owner, projects } => {
                    let states = state.map_or(JobState::ALL.to_vec(), |state| vec![state]);
                    numbers_visible(connection, owner, projects, &states, before, limit)?
                }
                RowVisibility::Tree { owner, session } => {
                    let states = state.map_or(JobState::ALL.to_vec(), |state| vec![state]);
                    let own = numbers_visible(connection, owner, &[], &states, before, limit)?;
                    numbers_of_tree(connection, session, &states, before, limit, own)?
                }
            };
            page::page(&numbers, limit, |n| {
                connection
                    .prepare_cached(
                        "SELECT id, owner, project, state, tool, created_at, started_at,
                             completed_at, error
                         FROM job WHERE n = ?1",
                    )?
                    .query_row([n], summary)
            })
        })
    }

    /// Returns the number of jobs that a reader may see, by state, without counting rows.
    pub fn job_counts(&self, visible: &RowVisibility) -> Result<JobCounts, ReadError> {
        self.readers().read("the counts of jobs", |connection| {
            let mut counts = JobCounts::default();
            match visible {
                RowVisibility::All => {
                    let all = "SELECT state, jobs FROM job_count";
                    add_counts(&mut counts, connection, all, [])?;
                }
                RowVisibility::Owner { owner, projects } => {
                    let owner = owner_bytes(owner);
                    let own = "SELECT state, jobs FROM job_count WHERE owner = ?1";
                    add_counts(&mut counts, connection, own, [owner])?;
                    let others = "SELECT state, jobs FROM job_count
                                  WHERE project = ?1 AND owner <> ?2";
                    for project in BTreeSet::from_iter(projects) {
                        let params = params![project.as_bytes(), owner];
                        add_counts(&mut counts, connection, others, params)?;
                    }
                }
                RowVisibility::Tree { owner, session } => {
                    let params = params![session.as_bytes(), owner_bytes(owner)];
                    add_counts(&mut counts, connection, COUNTS_OF_TREE, params)?;
                }
            }
            Ok(counts)
        })
    }

    /// Returns the jobs that had not ended, oldest first, for the start of the daemon.
    pub fn unfinished_jobs(&self) -> Result<Vec<JobRecord>, ReadError> {
        self.readers().read("the unfinished jobs", |connection| {
            connection
                .prepare_cached("SELECT * FROM job WHERE state IN (0, 1) ORDER BY n")?
                .query_map([], job)?
                .collect()
        })
    }
}

fn numbers_of_all(
    connection: &Connection,
    state: Option<JobState>,
    before: PageStart,
    limit: usize,
) -> rusqlite::Result<BTreeSet<i64>> {
    let mut numbers = BTreeSet::new();
    let limit = int(limit as u64).saturating_add(1);
    match state {
        None => {
            page::gather(&mut numbers, connection.prepare_cached(PAGE_OF_ALL)?, [before.0, limit])?;
        }
        Some(state) => {
            let params = [state_int(state), before.0, limit];
            page::gather(&mut numbers, connection.prepare_cached(PAGE_OF_STATE)?, params)?;
        }
    }
    Ok(numbers)
}

fn numbers_visible(
    connection: &Connection,
    owner: &PrincipalId,
    projects: &[ProjectId],
    states: &[JobState],
    before: PageStart,
    limit: usize,
) -> rusqlite::Result<BTreeSet<i64>> {
    let mut numbers = BTreeSet::new();
    let limit = int(limit as u64).saturating_add(1);
    for state in states.iter().copied().map(state_int) {
        let params = params![owner_bytes(owner), state, before.0, limit];
        page::gather(&mut numbers, connection.prepare_cached(PAGE_OF_OWNER)?, params)?;
        for project in projects {
            let params = params![project.as_bytes(), state, before.0, limit];
            page::gather(&mut numbers, connection.prepare_cached(PAGE_OF_PROJECT)?, params)?;
        }
    }
    Ok(numbers)
}

/// Adds the jobs of a session and its descendants.
fn numbers_of_tree(
    connection: &Connection,
    session: &SessionId,
    states: &[JobState],
    before: PageStart,
    limit: usize,
    mut numbers: BTreeSet<i64>,
) -> rusqlite::Result<BTreeSet<i64>> {
    let limit = int(limit as u64).saturating_add(1);
    let mut select = connection.prepare_cached(SESSIONS_OF_TREE)?;
    let mut sessions = select.query([session.as_bytes()])?;
    while let Some(row) = sessions.next()? {
        let session = row.id("session", SessionId::from_random)?;
        for state in states.iter().copied().map(state_int) {
            let params = params![session.as_bytes(), state, before.0, limit];
            page::gather(&mut numbers, connection.prepare_cached(PAGE_OF_SESSION)?, params)?;
        }
    }
    Ok(numbers)
}

fn add_counts(
    counts: &mut JobCounts,
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<()> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    while let Some(row) = rows.next()? {
        let (state, jobs) = (row.state()?, row.u64("jobs")?);
        let idx = JobState::ALL.iter().position(|s| *s == state).unwrap_or_default();
        counts.0[idx] += jobs;
    }
    Ok(())
}

fn job(row: &Row<'_>) -> rusqlite::Result<JobRecord> {
    let request_id = row.opt_id("request_id", RequestId::from_bytes)?;
    let body_hash: Option<BlobHash> = row.opt_hash("body_hash")?;
    Ok(JobRecord {
        id: row.id("id", JobId::from_random)?,
        tool: row.get("tool")?,
        owner: row.owner()?,
        project: row.opt_id("project", ProjectId::from_random)?,
        session: row.opt_id("session", SessionId::from_random)?,
        repeat: request_id
            .zip(body_hash)
            .map(|(request_id, body_hash)| RepeatKey { request_id, body_hash }),
        request: row.bytes("request")?,
        state: row.state()?,
        result: row.opt_bytes("result")?,
        result_blob: row.opt_hash("result_blob")?,
        error: row.opt_bytes("error")?,
        created_at: row.u64("created_at")?,
        started_at: row.opt_u64("started_at")?,
        completed_at: row.opt_u64("completed_at")?,
        expires_at: row.opt_u64("expires_at")?,
    })
}

fn summary(row: &Row<'_>) -> rusqlite::Result<JobSummary> {
    Ok(JobSummary {
        id: row.id("id", JobId::from_random)?,
        tool: row.get("tool")?,
        owner: row.owner()?,
        project: row.opt_id("project", ProjectId::from_random)?,
        state: row.state()?,
        error: row.opt_bytes("error")?,
        created_at: row.u64("created_at")?,
        started_at: row.opt_u64("started_at")?,
        completed_at: row.opt_u64("completed_at")?,
    })
}
