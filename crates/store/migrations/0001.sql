-- Rows are numbered by `n` in commit order; lists are sorted by it, newest first. Every index
-- implicitly ends in `n`, because SQLite adds the row number.
--
-- owner: empty for the daemon's own user, otherwise the 16 bytes of a token's public id.
-- state: 0 pending, 1 running, 2 complete, 3 failed, 4 cancelled.
-- *_at: milliseconds since the Unix epoch.

CREATE TABLE job (
    n            INTEGER PRIMARY KEY,
    id           BLOB NOT NULL UNIQUE,
    owner        BLOB NOT NULL,
    project      BLOB,
    state        INTEGER NOT NULL,
    tool         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    started_at   INTEGER,
    completed_at INTEGER,
    expires_at   INTEGER,
    request_id   BLOB,
    body_hash    BLOB,
    result_blob  BLOB,
    -- What may be large comes last, so that lists need not read over it.
    error        BLOB,
    result       BLOB,
    request      BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX job_repeat ON job (owner, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX job_owner ON job (owner, state);
CREATE INDEX job_project ON job (project, state) WHERE project IS NOT NULL;
CREATE INDEX job_state ON job (state);
CREATE INDEX job_expires ON job (expires_at) WHERE expires_at IS NOT NULL;

-- The number of jobs, so that they need not be counted. No project is the empty blob.
CREATE TABLE job_count (
    owner   BLOB NOT NULL,
    project BLOB NOT NULL,
    state   INTEGER NOT NULL,
    jobs    INTEGER NOT NULL,
    PRIMARY KEY (owner, project, state)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_count_project ON job_count (project);

CREATE TABLE artifact (
    n               INTEGER PRIMARY KEY,
    id              BLOB NOT NULL UNIQUE,
    content_hash    BLOB NOT NULL,
    mime_type       TEXT NOT NULL,
    size            INTEGER NOT NULL,
    owner           BLOB NOT NULL,
    project         BLOB,
    creator         TEXT NOT NULL,
    parent          BLOB REFERENCES artifact (id),
    variation_set   BLOB,
    variation_index INTEGER,
    created_at      INTEGER NOT NULL,
    tags            BLOB NOT NULL,
    metadata        BLOB
) STRICT;

CREATE UNIQUE INDEX artifact_variation ON artifact (variation_set, variation_index)
    WHERE variation_set IS NOT NULL;
CREATE INDEX artifact_content_owner ON artifact (content_hash, owner);
CREATE INDEX artifact_content_project ON artifact (content_hash, project)
    WHERE project IS NOT NULL;
CREATE INDEX artifact_parent ON artifact (parent) WHERE parent IS NOT NULL;

-- One row per list an artifact appears in: `view` is the owner of the list (all principals, an owner, a
-- project), `facet` its filter (nothing, a tag, a creator, both). A page of any list then costs the
-- same regardless of the number of artifacts.
CREATE TABLE artifact_list (
    view  BLOB NOT NULL,
    facet BLOB NOT NULL,
    n     INTEGER NOT NULL REFERENCES artifact (n),
    PRIMARY KEY (view, facet, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE annotation (
    n          INTEGER PRIMARY KEY,
    id         BLOB NOT NULL UNIQUE,
    artifact   BLOB NOT NULL REFERENCES artifact (id),
    message    TEXT NOT NULL,
    source     TEXT NOT NULL,
    vibe       TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX annotation_artifact ON annotation (artifact);

-- projects: NULL for all projects, otherwise the concatenated ids, 16 bytes each.
-- level: 0 read, 1 write, 2 admin.
CREATE TABLE token (
    n            INTEGER PRIMARY KEY,
    id           BLOB NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    secret_hash  BLOB NOT NULL UNIQUE,
    public_key   BLOB NOT NULL UNIQUE,
    level        INTEGER NOT NULL,
    projects     BLOB,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;

-- Who uploaded which content, and therefore may read it. No project is the empty blob.
CREATE TABLE upload (
    hash        BLOB NOT NULL,
    owner       BLOB NOT NULL,
    project     BLOB NOT NULL,
    uploaded_at INTEGER NOT NULL,
    PRIMARY KEY (hash, owner, project)
) STRICT, WITHOUT ROWID;

CREATE INDEX upload_project ON upload (hash, project);
