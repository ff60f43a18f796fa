//! Artifacts, their annotations, and who may read which content.

use std::collections::BTreeSet;

use ringback_proto::ids::{
    AnnotationId, ArtifactId, BlobHash, JobId, ProjectId, SessionId, VariationSetId,
};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{AnnotationRecord, ArtifactRecord};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::lists;
use super::page::{self, Origin, Page, PageStart, RowVisibility};
use crate::error::ReadError;
use crate::row::{Columns, int, owner_bytes};
use crate::store::Store;

pub(super) const PAGE: &str = "SELECT n FROM artifact_list
    WHERE view = ?1 AND facet = ?2 AND n < ?3 ORDER BY n DESC LIMIT ?4";
pub(super) const OF_OWNER: &str = "SELECT
    EXISTS (SELECT 1 FROM artifact WHERE content_hash = ?1 AND owner = ?2)
    OR EXISTS (SELECT 1 FROM upload WHERE hash = ?1 AND owner = ?2)";
pub(super) const OF_PROJECT: &str = "SELECT
    EXISTS (SELECT 1 FROM artifact WHERE content_hash = ?1 AND project = ?2)
    OR EXISTS (SELECT 1 FROM upload WHERE hash = ?1 AND project = ?2)";

pub(super) const OF_TREE: &str = "SELECT
    EXISTS (SELECT 1 FROM artifact WHERE content_hash = ?1
            AND session IN (SELECT session FROM session_tree WHERE ancestor = ?2))
    OR EXISTS (SELECT 1 FROM upload WHERE hash = ?1
               AND session IN (SELECT session FROM session_tree WHERE ancestor = ?2))";
/// The filter of an artifact list.
#[derive(Debug, Clone, Copy, Default)]
pub struct ArtifactFilter<'a> {
    /// Only artifacts with this tag.
    pub tag: Option<&'a str>,
    /// Only artifacts by this creator.
    pub creator: Option<&'a str>,
}

/// Reads block; async callers go through a blocking pool.
impl Store {
    /// Returns an artifact by its id, if a reader may see it.
    pub fn artifact(
        &self,
        id: ArtifactId,
        visible: &RowVisibility,
    ) -> Result<Option<ArtifactRecord>, ReadError> {
        self.readers().read("an artifact", |connection| {
            let mut select = connection.prepare_cached("SELECT * FROM artifact WHERE id = ?1")?;
            let found = select.query_row([id.as_bytes()], artifact).optional()?;
            Ok(match found {
                Some(found) if visible.shows(connection, origin(&found))? => Some(found),
                Some(_) | None => None,
            })
        })
    }

    /// Returns a page of artifacts, newest first.
    pub fn artifacts(
        &self,
        visible: &RowVisibility,
        filter: ArtifactFilter<'_>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<ArtifactRecord>, ReadError> {
        let before = PageStart::parse(cursor)?;
        let views = lists::views(visible);
        let facet = lists::facet(filter.tag, filter.creator);
        self.readers().read("a page of artifacts", |connection| {
            let mut numbers = BTreeSet::new();
            for view in views {
                let params = params![view, facet, before.0, int(limit as u64).saturating_add(1)];
                page::gather(&mut numbers, connection.prepare_cached(PAGE)?, params)?;
            }
            page::page(&numbers, limit, |n| {
                let mut select =
                    connection.prepare_cached("SELECT * FROM artifact WHERE n = ?1")?;
                select.query_row([n], artifact)
            })
        })
    }

    /// Returns at most `limit` annotations of an artifact, oldest first.
    pub fn annotations(
        &self,
        artifact_id: ArtifactId,
        limit: usize,
    ) -> Result<Vec<AnnotationRecord>, ReadError> {
        self.readers().read("annotations", |connection| {
            connection
                .prepare_cached("SELECT * FROM annotation WHERE artifact = ?1 ORDER BY n LIMIT ?2")?
                .query_map(params![artifact_id.as_bytes(), int(limit as u64)], annotation)?
                .collect()
        })
    }

    /// Returns the MIME type that an owner stored content with; `None` if the owner never stored
    /// it, or before types were kept.
    pub fn upload_mime(
        &self,
        hash: BlobHash,
        owner: &PrincipalId,
    ) -> Result<Option<String>, ReadError> {
        let sql = "SELECT mime FROM upload WHERE hash = ?1 AND owner = ?2 AND mime IS NOT NULL
                   ORDER BY uploaded_at LIMIT 1";
        self.readers().read("the type of an upload", |connection| {
            let mut select = connection.prepare_cached(sql)?;
            let found =
                select.query_row(params![hash.as_bytes(), owner_bytes(owner)], |row| row.get(0));
            found.optional()
        })
    }

    /// Returns whether a reader may see content: through a visible artifact, or an upload by the
    /// reader or in the reader's projects. It does not check that the content exists.
    pub fn may_read_blob(
        &self,
        hash: BlobHash,
        visible: &RowVisibility,
    ) -> Result<bool, ReadError> {
        self.readers().read("who may read a blob", |connection| match visible {
            RowVisibility::All => Ok(true),
            RowVisibility::Owner { owner, projects } => {
                if exists(connection, OF_OWNER, hash, owner_bytes(owner))? {
                    return Ok(true);
                }
                for project in projects {
                    if exists(connection, OF_PROJECT, hash, project.as_bytes())? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            RowVisibility::Tree { owner, session } => {
                Ok(exists(connection, OF_OWNER, hash, owner_bytes(owner))?
                    || exists(connection, OF_TREE, hash, session.as_bytes())?)
            }
        })
    }
}

fn exists(
    connection: &Connection,
    sql: &str,
    hash: BlobHash,
    whose: &[u8],
) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached(sql)?;
    select.query_row(params![hash.as_bytes(), whose], |row| row.get(0))
}

pub(super) const fn origin(artifact: &ArtifactRecord) -> Origin {
    Origin { owner: artifact.owner, project: artifact.project, session: artifact.session }
}

pub(crate) fn artifact(row: &Row<'_>) -> rusqlite::Result<ArtifactRecord> {
    Ok(ArtifactRecord {
        id: row.id("id", ArtifactId::from_random)?,
        content_hash: row.hash("content_hash")?,
        mime_type: row.get("mime_type")?,
        size: row.u64("size")?,
        owner: row.owner()?,
        project: row.opt_id("project", ProjectId::from_random)?,
        tags: row.tags()?,
        creator: row.get("creator")?,
        parent_id: row.opt_id("parent", ArtifactId::from_random)?,
        variation_set_id: row.opt_id("variation_set", VariationSetId::from_random)?,
        variation_index: row.get("variation_index")?,
        metadata: row.opt_bytes("metadata")?,
        tool: row.get("tool")?,
        job: row.opt_id("job", JobId::from_random)?,
        session: row.opt_id("session", SessionId::from_random)?,
        created_at: row.u64("created_at")?,
    })
}

pub(super) fn annotation(row: &Row<'_>) -> rusqlite::Result<AnnotationRecord> {
    Ok(AnnotationRecord {
        id: row.id("id", AnnotationId::from_random)?,
        artifact_id: row.id("artifact", ArtifactId::from_random)?,
        message: row.get("message")?,
        source: row.get("source")?,
        vibe: row.get("vibe")?,
        created_at: row.u64("created_at")?,
    })
}
