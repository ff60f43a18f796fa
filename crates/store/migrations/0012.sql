-- For queries of callers: what a reader sees, by time, and ids in their text form as columns. SQLite
-- uses the index of an expression in fewer places than that of a column, for example not in a LEFT
-- JOIN, so the indexes on expressions become indexes on columns.

ALTER TABLE artifact ADD COLUMN id_text TEXT
    GENERATED ALWAYS AS ('art_' || lower(hex(id))) VIRTUAL;
ALTER TABLE artifact ADD COLUMN parent_text TEXT
    GENERATED ALWAYS AS (nullif('art_' || lower(hex(parent)), 'art_')) VIRTUAL;
ALTER TABLE artifact ADD COLUMN job_text TEXT
    GENERATED ALWAYS AS (nullif('job_' || lower(hex(job)), 'job_')) VIRTUAL;
ALTER TABLE artifact ADD COLUMN session_text TEXT
    GENERATED ALWAYS AS (nullif('gogol_' || lower(hex(session)), 'gogol_')) VIRTUAL;
ALTER TABLE artifact_source ADD COLUMN artifact_text TEXT
    GENERATED ALWAYS AS ('art_' || lower(hex(artifact))) VIRTUAL;
ALTER TABLE artifact_source ADD COLUMN source_text TEXT
    GENERATED ALWAYS AS (nullif('art_' || lower(hex(source)), 'art_')) VIRTUAL;
ALTER TABLE annotation ADD COLUMN id_text TEXT
    GENERATED ALWAYS AS ('ann_' || lower(hex(id))) VIRTUAL;
ALTER TABLE annotation ADD COLUMN artifact_text TEXT
    GENERATED ALWAYS AS ('art_' || lower(hex(artifact))) VIRTUAL;
ALTER TABLE job ADD COLUMN id_text TEXT
    GENERATED ALWAYS AS ('job_' || lower(hex(id))) VIRTUAL;
ALTER TABLE session ADD COLUMN id_text TEXT
    GENERATED ALWAYS AS ('gogol_' || lower(hex(id))) VIRTUAL;

DROP INDEX artifact_text;
DROP INDEX artifact_parent_text;
DROP INDEX artifact_job_text;
DROP INDEX artifact_session_text;
DROP INDEX artifact_source_text;
DROP INDEX annotation_text;
DROP INDEX job_text;
DROP INDEX session_text;

CREATE UNIQUE INDEX artifact_text ON artifact (id_text);
CREATE INDEX artifact_parent_text ON artifact (parent_text) WHERE parent_text IS NOT NULL;
CREATE INDEX artifact_job_text ON artifact (job_text) WHERE job_text IS NOT NULL;
CREATE INDEX artifact_session_text ON artifact (session_text) WHERE session_text IS NOT NULL;
CREATE INDEX artifact_source_artifact_text ON artifact_source (artifact_text);
CREATE INDEX artifact_source_text ON artifact_source (source_text) WHERE source_text IS NOT NULL;
CREATE UNIQUE INDEX annotation_text ON annotation (id_text);
CREATE INDEX annotation_artifact_text ON annotation (artifact_text);
CREATE UNIQUE INDEX job_text ON job (id_text);
CREATE UNIQUE INDEX session_text ON session (id_text);

CREATE INDEX artifact_created ON artifact (created_at);
CREATE INDEX artifact_owner ON artifact (owner, created_at);
CREATE INDEX artifact_project ON artifact (project, created_at) WHERE project IS NOT NULL;
CREATE INDEX artifact_session ON artifact (session, created_at) WHERE session IS NOT NULL;
CREATE INDEX annotation_created ON annotation (created_at);

-- Without statistics SQLite takes an owner's rows for ten, and reads all of them rather than search
-- by an id. So it is told once that an owner, a project or a session may have very many.
ANALYZE garden;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('artifact', 'artifact_owner', '1000000 100000 2'),
    ('artifact', 'artifact_project', '1000000 100000 2'),
    ('artifact', 'artifact_session', '1000000 10000 2');
