-- Where things come from, and the graph: identities, their hints, tags and connections.
--
-- session: the agent session of the key that made the call. NULL (in upload: empty) for a user's own
-- call, and in rows from before this migration.

-- A session and its descendants, itself included. A row outlives the descendant, so that what a
-- deleted child made stays visible to its ancestors; it goes with the ancestor.
CREATE TABLE session_tree (
    ancestor BLOB NOT NULL,
    session  BLOB NOT NULL,
    PRIMARY KEY (ancestor, session)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_tree_session ON session_tree (session);

WITH RECURSIVE tree (ancestor, session) AS (
    SELECT id, id FROM session
    UNION SELECT tree.ancestor, session.id FROM session JOIN tree ON session.parent = tree.session)
INSERT INTO session_tree (ancestor, session) SELECT ancestor, session FROM tree;

CREATE INDEX job_session ON job (session, state) WHERE session IS NOT NULL;

-- tool, job: what made the artifact. The job's row may have expired.
ALTER TABLE artifact ADD COLUMN tool TEXT;
ALTER TABLE artifact ADD COLUMN job BLOB;
ALTER TABLE artifact ADD COLUMN session BLOB;

CREATE INDEX artifact_content_session ON artifact (content_hash, session)
    WHERE session IS NOT NULL;

-- The same content may be stored in several sessions with the same token.
CREATE TABLE upload_new (
    hash        BLOB NOT NULL,
    owner       BLOB NOT NULL,
    project     BLOB NOT NULL,
    session     BLOB NOT NULL,
    uploaded_at INTEGER NOT NULL,
    mime        TEXT,
    PRIMARY KEY (hash, owner, project, session)
) STRICT, WITHOUT ROWID;

INSERT INTO upload_new (hash, owner, project, session, uploaded_at, mime)
SELECT hash, owner, project, x'', uploaded_at, mime FROM upload;

DROP TABLE upload;
ALTER TABLE upload_new RENAME TO upload;

CREATE INDEX upload_project ON upload (hash, project);
CREATE INDEX upload_session ON upload (hash, session);

-- The contents an artifact was made from, in the order its tool read them.
-- source: the artifact that the caller named, NULL if it named only content.
-- role: what the tool used it for.
-- is_hidden: 1 if the maker could not see the content itself (a region of the garden that belongs to
-- another principal). Then only those who see `source` see `source_hash`.
-- n: of the artifact.
CREATE TABLE artifact_source (
    artifact    BLOB NOT NULL REFERENCES artifact (id),
    n           INTEGER NOT NULL REFERENCES artifact (n),
    position    INTEGER NOT NULL,
    source      BLOB REFERENCES artifact (id),
    source_hash BLOB NOT NULL,
    role        TEXT NOT NULL,
    is_hidden   INTEGER NOT NULL,
    PRIMARY KEY (artifact, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX artifact_source_source ON artifact_source (source, n) WHERE source IS NOT NULL;
CREATE INDEX artifact_source_hash ON artifact_source (source_hash);

-- The tags of `artifact.tags`, for queries. n: of the artifact.
CREATE TABLE artifact_tag (
    n   INTEGER NOT NULL REFERENCES artifact (n),
    tag TEXT NOT NULL,
    PRIMARY KEY (n, tag)
) STRICT, WITHOUT ROWID;

CREATE INDEX artifact_tag_tag ON artifact_tag (tag, n);

-- The list of all principals has each tag once: `t`, 8 bytes of its length, the tag. With a creator
-- it is longer. No tag has more than 65,535 bytes.
INSERT INTO artifact_tag (n, tag)
SELECT n, CAST(substr(facet, 10) AS TEXT) FROM artifact_list
WHERE view = x'65' AND substr(facet, 1, 1) = x'74'
    AND length(facet) = 9
        + 4096 * (instr('0123456789ABCDEF', substr(hex(substr(facet, 8, 2)), 1, 1)) - 1)
        + 256 * (instr('0123456789ABCDEF', substr(hex(substr(facet, 8, 2)), 2, 1)) - 1)
        + 16 * (instr('0123456789ABCDEF', substr(hex(substr(facet, 8, 2)), 3, 1)) - 1)
        + instr('0123456789ABCDEF', substr(hex(substr(facet, 8, 2)), 4, 1)) - 1;

-- Ids in their text form, so that a query by such an id searches an index.
CREATE INDEX artifact_text ON artifact ('art_' || lower(hex(id)));
CREATE INDEX artifact_parent_text ON artifact (nullif('art_' || lower(hex(parent)), 'art_'));
CREATE INDEX artifact_job_text ON artifact (nullif('job_' || lower(hex(job)), 'job_'));
CREATE INDEX artifact_session_text ON artifact (nullif('gogol_' || lower(hex(session)), 'gogol_'));
CREATE INDEX artifact_source_text ON artifact_source (nullif('art_' || lower(hex(source)), 'art_'));
CREATE INDEX annotation_text ON annotation ('ann_' || lower(hex(id)));
CREATE INDEX job_text ON job ('job_' || lower(hex(id)));
CREATE INDEX session_text ON session ('gogol_' || lower(hex(id)));

-- The index of an annotation among those of its artifact, from 0.
ALTER TABLE annotation ADD COLUMN position INTEGER NOT NULL DEFAULT 0;

UPDATE annotation SET position = numbered.position
FROM (SELECT n, row_number() OVER (PARTITION BY artifact ORDER BY n) - 1 AS position
      FROM annotation) AS numbered
WHERE annotation.n = numbered.n;

-- The words of artifacts (creator, tags) and of annotations (message, vibe). rowid: the `n` of the
-- artifact; for an annotation `n << 24 | position`, so that the newest artifact is found first.
-- keys: one word for each reader and filter of the artifact, so that a search stays within what its
-- reader sees: `e` (everybody), and in hex `o` + owner, `p` + project, `s` + each session it was
-- made below, `t` + each tag, `c` + creator.
CREATE VIRTUAL TABLE artifact_words USING fts5 (
    keys, words, content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE annotation_words USING fts5 (
    keys, words, content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2');

INSERT INTO artifact_words (rowid, keys, words)
SELECT n,
    'e o' || lower(hex(owner)) || coalesce(' p' || nullif(lower(hex(project)), ''), '')
        || ' c' || lower(hex(creator))
        || coalesce(' ' || (SELECT group_concat('t' || lower(hex(tag)), ' ')
                            FROM artifact_tag AS t WHERE t.n = a.n), ''),
    creator || coalesce(' ' || (SELECT group_concat(tag, ' ')
                                FROM artifact_tag AS t WHERE t.n = a.n), '')
FROM artifact AS a ORDER BY n;

INSERT INTO annotation_words (rowid, keys, words)
SELECT (a.n << 24) + annotation.position,
    'e o' || lower(hex(owner)) || coalesce(' p' || nullif(lower(hex(project)), ''), '')
        || ' c' || lower(hex(creator))
        || coalesce(' ' || (SELECT group_concat('t' || lower(hex(tag)), ' ')
                            FROM artifact_tag AS t WHERE t.n = a.n), ''),
    message || coalesce(' ' || vibe, '')
FROM annotation JOIN artifact AS a ON a.id = annotation.artifact ORDER BY a.n, annotation.position;

-- Devices, ports, instruments: whatever a principal gave a name. `id` is unique for its owner.
CREATE TABLE identity (
    n          INTEGER PRIMARY KEY,
    owner      BLOB NOT NULL,
    project    BLOB,
    session    BLOB,
    id         TEXT NOT NULL,
    name       TEXT NOT NULL,
    -- The name in small letters, to search in.
    name_small TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (owner, id)
) STRICT;

CREATE INDEX identity_owner ON identity (owner);
CREATE INDEX identity_project ON identity (project) WHERE project IS NOT NULL;
CREATE INDEX identity_session ON identity (session) WHERE session IS NOT NULL;
CREATE INDEX identity_id ON identity (id);

-- identity: the `n` of one.
CREATE TABLE identity_hint (
    identity   INTEGER NOT NULL REFERENCES identity (n),
    kind       TEXT NOT NULL,
    value      TEXT NOT NULL,
    confidence REAL NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (identity, kind, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX identity_hint_value ON identity_hint (kind, value);

CREATE TABLE identity_tag (
    identity   INTEGER NOT NULL REFERENCES identity (n),
    namespace  TEXT NOT NULL,
    value      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (identity, namespace, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX identity_tag_value ON identity_tag (namespace, value);

-- owner, project, session: of the connection, which may join identities of others.
-- transport: empty if not given.
CREATE TABLE identity_connection (
    n             INTEGER PRIMARY KEY,
    owner         BLOB NOT NULL,
    project       BLOB,
    session       BLOB,
    from_identity INTEGER NOT NULL REFERENCES identity (n),
    from_port     TEXT NOT NULL,
    to_identity   INTEGER NOT NULL REFERENCES identity (n),
    to_port       TEXT NOT NULL,
    transport     TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    UNIQUE (owner, from_identity, from_port, to_identity, to_port, transport)
) STRICT;

CREATE INDEX identity_connection_from ON identity_connection (from_identity);
CREATE INDEX identity_connection_to ON identity_connection (to_identity);
