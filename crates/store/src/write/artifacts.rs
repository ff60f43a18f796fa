//! Writes artifacts, what they were made from, their annotations, and uploads.

use std::collections::BTreeSet;

use ringback_proto::ids::{ArtifactId, BlobHash, JobId, ProjectId, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{AnnotationRecord, ArtifactRecord, SourceRecord, UnixMs};
use rusqlite::{Connection, OptionalExtension, params};

use super::{ApplyError, WriteOutcome, taken};
use crate::error::CommitError;
use crate::read::graph::ANNOTATION_BITS;
use crate::read::{artifact, lists, words};
use crate::row::{Columns, int, owner_bytes, project_bytes, session_bytes, tags_bytes};

pub(super) fn created(
    connection: &Connection,
    artifact: &ArtifactRecord,
) -> Result<WriteOutcome, ApplyError> {
    let id = artifact.id;
    if let Some(parent) = artifact.parent_id
        && !exists(connection, parent)?
    {
        return Err(CommitError::NoParent { id, parent }.into());
    }
    let set = artifact.variation_set_id.as_ref().map(|set| set.as_bytes());
    let variation_index: Option<u32> = match set {
        None => None,
        Some(set) => connection
            .prepare_cached(
                "SELECT coalesce(max(variation_index) + 1, 0) FROM artifact
                 WHERE variation_set = ?1",
            )?
            .query_row([set], |row| row.get(0))?,
    };
    let inserted = connection
        .prepare_cached(
            "INSERT INTO artifact (id, content_hash, mime_type, size, owner, project, creator,
                 parent, variation_set, variation_index, created_at, tags, metadata, tool, job,
                 session)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?
        .execute(params![
            id.as_bytes(),
            artifact.content_hash.as_bytes(),
            artifact.mime_type,
            int(artifact.size),
            owner_bytes(&artifact.owner),
            artifact.project.as_ref().map(ProjectId::as_bytes),
            artifact.creator,
            artifact.parent_id.as_ref().map(ArtifactId::as_bytes),
            set,
            variation_index,
            int(artifact.created_at),
            tags_bytes(&artifact.tags),
            artifact.metadata.as_deref(),
            artifact.tool,
            artifact.job.as_ref().map(JobId::as_bytes),
            artifact.session.as_ref().map(SessionId::as_bytes),
        ]);
    taken(inserted, || format!("artifact {id}"))?;
    let n = connection.last_insert_rowid();
    list(connection, artifact, n)?;
    index(connection, artifact, n)?;
    Ok(WriteOutcome::ArtifactCreated { variation_index })
}

/// Adds an artifact to every list it appears in.
fn list(connection: &Connection, artifact: &ArtifactRecord, n: i64) -> rusqlite::Result<()> {
    let mut views = vec![lists::EVERYBODY.to_vec(), lists::of_owner(&artifact.owner)];
    views.extend(artifact.project.as_ref().map(lists::of_project));
    views.extend(ancestors(connection, artifact.session)?.iter().map(lists::of_session));
    let creator = Some(&*artifact.creator);
    let mut facets = BTreeSet::from([lists::facet(None, None), lists::facet(None, creator)]);
    for tag in &artifact.tags {
        facets.insert(lists::facet(Some(tag), None));
        facets.insert(lists::facet(Some(tag), creator));
    }
    let mut insert = connection
        .prepare_cached("INSERT INTO artifact_list (view, facet, n) VALUES (?1, ?2, ?3)")?;
    for view in &views {
        for facet in &facets {
            insert.execute(params![view, facet, n])?;
        }
    }
    Ok(())
}

/// Makes an artifact findable by its tags and words.
fn index(connection: &Connection, artifact: &ArtifactRecord, n: i64) -> rusqlite::Result<()> {
    let mut insert =
        connection.prepare_cached("INSERT INTO artifact_tag (n, tag) VALUES (?1, ?2)")?;
    for tag in BTreeSet::from_iter(&artifact.tags) {
        insert.execute(params![n, tag])?;
    }
    let mut text = artifact.creator.clone();
    for tag in &artifact.tags {
        text.push(' ');
        text.push_str(tag);
    }
    connection
        .prepare_cached("INSERT INTO artifact_words (rowid, keys, words) VALUES (?1, ?2, ?3)")?
        .execute(params![n, keys(connection, artifact)?, text])?;
    Ok(())
}

/// Returns the words for the readers and filters of an artifact.
fn keys(connection: &Connection, artifact: &ArtifactRecord) -> rusqlite::Result<String> {
    let mut keys = format!("{} {}", words::EVERYBODY, words::of_owner(&artifact.owner));
    let mut add = |key: String| {
        keys.push(' ');
        keys.push_str(&key);
    };
    add(words::of_creator(&artifact.creator));
    artifact.project.iter().for_each(|project| add(words::of_project(project)));
    for session in ancestors(connection, artifact.session)? {
        add(words::of_session(&session));
    }
    for tag in BTreeSet::from_iter(&artifact.tags) {
        add(words::of_tag(tag));
    }
    Ok(keys)
}

/// Returns a session and its ancestors.
fn ancestors(
    connection: &Connection,
    session: Option<SessionId>,
) -> rusqlite::Result<Vec<SessionId>> {
    let Some(session) = session else { return Ok(Vec::new()) };
    connection
        .prepare_cached("SELECT ancestor FROM session_tree WHERE session = ?1")?
        .query_map([session.as_bytes()], |row| row.id("ancestor", SessionId::from_random))?
        .collect()
}

pub(super) fn source_added(
    connection: &Connection,
    source: &SourceRecord,
) -> Result<(), ApplyError> {
    for id in [Some(source.artifact_id), source.source].into_iter().flatten() {
        if !exists(connection, id)? {
            return Err(CommitError::NoArtifact { id }.into());
        }
    }
    connection
        .prepare_cached(
            "INSERT INTO artifact_source (artifact, n, position, source, source_hash, role,
                 is_hidden)
             VALUES (?1, (SELECT n FROM artifact WHERE id = ?1),
                 (SELECT coalesce(max(position) + 1, 0) FROM artifact_source WHERE artifact = ?1),
                 ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            source.artifact_id.as_bytes(),
            source.source.as_ref().map(ArtifactId::as_bytes),
            source.source_hash.as_bytes(),
            source.role.as_str(),
            source.is_hidden,
        ])?;
    Ok(())
}

pub(super) fn annotation_added(
    connection: &Connection,
    annotation: &AnnotationRecord,
) -> Result<(), ApplyError> {
    let id = annotation.artifact_id;
    let (artifact, n) = connection
        .prepare_cached("SELECT * FROM artifact WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| Ok((artifact(row)?, row.get::<_, i64>("n")?)))
        .optional()?
        .ok_or(CommitError::NoArtifact { id })?;
    let position: i64 = connection
        .prepare_cached(
            "SELECT position FROM annotation WHERE artifact = ?1 ORDER BY n DESC LIMIT 1",
        )?
        .query_row([id.as_bytes()], |row| row.get(0))
        .optional()?
        .map_or(0, |last: i64| last + 1);
    if position >= 1 << ANNOTATION_BITS {
        return Err(CommitError::TooMany {
            what: "annotations of an artifact",
            max: 1 << ANNOTATION_BITS,
        }
        .into());
    }
    let inserted = connection
        .prepare_cached(
            "INSERT INTO annotation (id, artifact, message, source, vibe, created_at, position)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            annotation.id.as_bytes(),
            annotation.artifact_id.as_bytes(),
            annotation.message,
            annotation.source,
            annotation.vibe,
            int(annotation.created_at),
            position,
        ]);
    taken(inserted, || format!("annotation {}", annotation.id))?;
    let vibe = annotation.vibe.as_deref().unwrap_or_default();
    connection
        .prepare_cached("INSERT INTO annotation_words (rowid, keys, words) VALUES (?1, ?2, ?3)")?
        .execute(params![
            (n << ANNOTATION_BITS) + position,
            keys(connection, &artifact)?,
            format!("{} {vibe}", annotation.message)
        ])?;
    Ok(())
}

/// Content that an owner stored.
pub(super) struct Upload<'a> {
    pub(super) hash: &'a BlobHash,
    pub(super) owner: &'a PrincipalId,
    pub(super) project: Option<&'a ProjectId>,
    pub(super) session: Option<&'a SessionId>,
    pub(super) mime_type: &'a str,
    pub(super) at: UnixMs,
}

impl Upload<'_> {
    /// The first upload of an owner counts, with its type.
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<WriteOutcome> {
        let (hash, owner) = (self.hash.as_bytes(), owner_bytes(self.owner));
        let (project, session) = (project_bytes(self.project), session_bytes(self.session));
        let first: Option<Option<String>> = connection
            .prepare_cached(
                "SELECT mime FROM upload WHERE hash = ?1 AND owner = ?2
                 ORDER BY mime IS NULL, uploaded_at LIMIT 1",
            )?
            .query_row(params![hash, owner], |row| row.get(0))
            .optional()?;
        let mime = first.clone().flatten().unwrap_or_else(|| self.mime_type.to_owned());
        connection
            .prepare_cached(
                "INSERT INTO upload (hash, owner, project, session, mime, uploaded_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
            )?
            .execute(params![hash, owner, project, session, mime, int(self.at)])?;
        let mime_type = match &first {
            Some(mime) => mime.clone(),
            None => Some(mime),
        };
        Ok(WriteOutcome::BlobUploaded { is_new: first.is_none(), mime_type })
    }
}

fn exists(connection: &Connection, id: ArtifactId) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM artifact WHERE id = ?1)")?
        .query_row([id.as_bytes()], |row| row.get(0))
}
