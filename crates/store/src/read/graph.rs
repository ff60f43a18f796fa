//! The graph: what was made from what, and what matches a text.

use std::collections::BTreeSet;

use ringback_proto::ids::{ArtifactId, BlobHash};
use ringback_proto::record::{AnnotationRecord, ArtifactRecord, UnixMs};
use ringback_proto::request::SourceRole;
use rusqlite::{Connection, OptionalExtension, params};

use super::page::RowVisibility;
use super::{ArtifactFilter, artifacts, words};
use crate::error::ReadError;
use crate::row::{Columns, int, owner_bytes};
use crate::store::Store;

pub(super) const NEWEST: &str = "SELECT max(n) FROM artifact WHERE content_hash = ?1";
pub(super) const NEWEST_OF_OWNER: &str = "SELECT max(n) FROM artifact
    WHERE content_hash = ?1 AND owner = ?2";
pub(super) const NEWEST_OF_PROJECT: &str = "SELECT max(n) FROM artifact
    WHERE content_hash = ?1 AND project = ?2";
pub(super) const NEWEST_OF_TREE: &str = "SELECT max(n) FROM artifact
    WHERE content_hash = ?1
        AND session IN (SELECT session FROM session_tree WHERE ancestor = ?2)";
pub(super) const SOURCES: &str = "SELECT source, source_hash, role, is_hidden FROM artifact_source
    WHERE artifact = ?1 ORDER BY position LIMIT ?2";
pub(super) const DERIVED: &str = "SELECT DISTINCT n FROM artifact_source
    WHERE source = ?1 ORDER BY n DESC";
pub(super) const CHILDREN: &str = "SELECT n FROM artifact WHERE parent = ?1 ORDER BY n DESC";
pub(super) const NEWEST_ANNOTATIONS: &str =
    "SELECT * FROM annotation WHERE artifact = ?1 ORDER BY n DESC LIMIT ?2";
const ARTIFACT: &str = "SELECT * FROM artifact WHERE n = ?1";
const LIKE: &str = "SELECT rowid FROM artifact_words
    WHERE artifact_words MATCH ?1 ORDER BY rowid DESC LIMIT ?2";
const REMARKED_LIKE: &str = "SELECT rowid FROM annotation_words
    WHERE annotation_words MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC LIMIT 1";

/// The rows of an artifact's annotations in the full-text table follow each other, so that the
/// newest artifact is found first: their number is that of the artifact with this many bits more.
pub(crate) const ANNOTATION_BITS: u32 = 24;

/// A source as a reader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisibleSource {
    /// What it was used for.
    pub role: SourceRole,
    /// Its artifact, if the reader sees it.
    pub artifact: Option<ArtifactId>,
    /// The hash of its content, unless it was hidden from the maker and is from the reader.
    pub content_hash: Option<BlobHash>,
}

/// Reads of the graph. They block; async callers go through a blocking pool.
#[derive(Debug, Clone, Copy)]
pub struct Graph<'a>(pub(super) &'a Store);

impl Store {
    /// Returns the reads of the graph.
    #[must_use]
    pub const fn graph(&self) -> Graph<'_> {
        Graph(self)
    }
}

impl Graph<'_> {
    /// Returns the newest artifact of some content that a reader sees.
    pub fn newest_of_content(
        self,
        hash: BlobHash,
        visible: &RowVisibility,
    ) -> Result<Option<ArtifactId>, ReadError> {
        self.0.readers().read("the newest artifact of some content", |connection| {
            let newest = |sql, whose: &[u8]| -> rusqlite::Result<Option<i64>> {
                let params = params![hash.as_bytes(), whose];
                connection.prepare_cached(sql)?.query_row(params, |row| row.get(0))
            };
            let mut n = match visible {
                RowVisibility::All => connection
                    .prepare_cached(NEWEST)?
                    .query_row([hash.as_bytes()], |row| row.get(0))?,
                RowVisibility::Owner { owner, .. } | RowVisibility::Tree { owner, .. } => {
                    newest(NEWEST_OF_OWNER, owner_bytes(owner))?
                }
            };
            match visible {
                RowVisibility::All => {}
                RowVisibility::Owner { projects, .. } => {
                    for project in projects {
                        n = n.max(newest(NEWEST_OF_PROJECT, project.as_bytes())?);
                    }
                }
                RowVisibility::Tree { session, .. } => {
                    n = n.max(newest(NEWEST_OF_TREE, session.as_bytes())?);
                }
            }
            let id = |n| {
                connection
                    .prepare_cached("SELECT id FROM artifact WHERE n = ?1")?
                    .query_row([n], |row| row.id("id", ArtifactId::from_random))
            };
            n.map(id).transpose()
        })
    }

    /// Returns at most `limit` of what an artifact was made from, in the order its tool read it.
    pub fn sources(
        self,
        id: ArtifactId,
        visible: &RowVisibility,
        limit: usize,
    ) -> Result<Vec<VisibleSource>, ReadError> {
        self.0.readers().read("the sources of an artifact", |connection| {
            let mut select = connection.prepare_cached(SOURCES)?;
            let mut rows = select.query(params![id.as_bytes(), int(limit as u64)])?;
            let mut sources = Vec::new();
            while let Some(row) = rows.next()? {
                let source = row.opt_id("source", ArtifactId::from_random)?;
                let artifact = match source {
                    Some(source) => seen(connection, source, visible)?.map(|artifact| artifact.id),
                    None => None,
                };
                let is_hidden: bool = row.get("is_hidden")?;
                let hash = row.hash("source_hash")?;
                let content_hash = (!is_hidden || artifact.is_some()).then_some(hash);
                let role = row.name("role", &SourceRole::ALL, SourceRole::as_str)?;
                sources.push(VisibleSource { role, artifact, content_hash });
            }
            Ok(sources)
        })
    }

    /// Returns the last annotations of an artifact, newest first.
    pub fn newest_annotations(
        self,
        artifact_id: ArtifactId,
        limit: usize,
    ) -> Result<Vec<AnnotationRecord>, ReadError> {
        self.0.readers().read("the newest annotations", |connection| {
            connection
                .prepare_cached(NEWEST_ANNOTATIONS)?
                .query_map(
                    params![artifact_id.as_bytes(), int(limit as u64)],
                    artifacts::annotation,
                )?
                .collect()
        })
    }

    /// Returns the artifacts that were made from one, or name it as their parent, and that a reader
    /// sees: at most `limit`, newest first.
    pub fn derived(
        self,
        id: ArtifactId,
        visible: &RowVisibility,
        limit: usize,
    ) -> Result<Vec<ArtifactId>, ReadError> {
        self.0.readers().read("what was made from an artifact", |connection| {
            let mut newest = BTreeSet::new();
            for sql in [DERIVED, CHILDREN] {
                let mut select = connection.prepare_cached(sql)?;
                let mut rows = select.query([id.as_bytes()])?;
                let mut n_seen = 0;
                while n_seen < limit
                    && let Some(row) = rows.next()?
                {
                    let n: i64 = row.get("n")?;
                    let artifact = numbered(connection, n)?;
                    if visible.shows(connection, artifacts::origin(&artifact))? {
                        newest.insert((n, artifact.id));
                        n_seen += 1;
                    }
                }
            }
            Ok(newest.into_iter().rev().take(limit).map(|(_, id)| id).collect())
        })
    }

    /// Returns at most `limit` artifacts since a time whose creator, tags or annotations contain
    /// every word of a text, newest first.
    pub fn artifacts_like(
        self,
        visible: &RowVisibility,
        filter: ArtifactFilter<'_>,
        text: &str,
        since: UnixMs,
        limit: usize,
    ) -> Result<Vec<ArtifactRecord>, ReadError> {
        let query = words::query(visible, filter, text);
        self.0.readers().read("artifacts by a text", |connection| {
            let mut numbers: BTreeSet<i64> = connection
                .prepare_cached(LIKE)?
                .query_map(params![query, int(limit as u64)], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let mut before = i64::MAX;
            for _ in 0..limit {
                let found: Option<i64> = connection
                    .prepare_cached(REMARKED_LIKE)?
                    .query_row(params![query, before], |row| row.get(0))
                    .optional()?;
                let Some(rowid) = found else { break };
                let n = rowid >> ANNOTATION_BITS;
                numbers.insert(n);
                before = n << ANNOTATION_BITS;
            }
            let newest = numbers.into_iter().rev().take(limit);
            let found = newest.map(|n| numbered(connection, n)).collect::<Result<Vec<_>, _>>()?;
            Ok(found.into_iter().filter(|artifact| artifact.created_at >= since).collect())
        })
    }
}

/// Returns an artifact that a reader sees.
fn seen(
    connection: &Connection,
    id: ArtifactId,
    visible: &RowVisibility,
) -> rusqlite::Result<Option<ArtifactRecord>> {
    let mut select = connection.prepare_cached("SELECT * FROM artifact WHERE id = ?1")?;
    let found = select.query_row([id.as_bytes()], artifacts::artifact).optional()?;
    Ok(match found {
        Some(found) if visible.shows(connection, artifacts::origin(&found))? => Some(found),
        Some(_) | None => None,
    })
}

fn numbered(connection: &Connection, n: i64) -> rusqlite::Result<ArtifactRecord> {
    connection.prepare_cached(ARTIFACT)?.query_row([n], artifacts::artifact)
}
