-- Regions whose content is still being made, approval, repeats and crossfades; the loop; what was
-- heard.

ALTER TABLE garden ADD COLUMN loop_start INTEGER;
ALTER TABLE garden ADD COLUMN loop_end INTEGER;

-- A region without content needs columns that may be null.
CREATE TABLE garden_region_new (
    n              INTEGER PRIMARY KEY,
    id             BLOB NOT NULL UNIQUE,
    owner          BLOB NOT NULL,
    project        BLOB,
    position       INTEGER NOT NULL,
    duration       INTEGER NOT NULL,
    repeat         INTEGER NOT NULL,
    state          TEXT NOT NULL,
    artifact       BLOB,
    content_hash   BLOB,
    mime_type      TEXT,
    job            BLOB,
    if_late        TEXT,
    approval       TEXT NOT NULL,
    reason         TEXT,
    gain_db        REAL NOT NULL,
    pan            REAL NOT NULL,
    offset_seconds REAL NOT NULL,
    fade_in        INTEGER NOT NULL,
    fade_out       INTEGER NOT NULL,
    crossfade      INTEGER NOT NULL,
    name           TEXT,
    tags           BLOB NOT NULL,
    created_at     INTEGER NOT NULL
) STRICT;

INSERT INTO garden_region_new
SELECT n, id, owner, project, position, duration, 1, 'ready', artifact, content_hash, mime_type, NULL,
       NULL, 'auto', NULL, gain_db, pan, offset_seconds, fade_in, fade_out, 0, name, tags, created_at
FROM garden_region;

DROP TABLE garden_region;
ALTER TABLE garden_region_new RENAME TO garden_region;

CREATE INDEX garden_region_position ON garden_region (position);
CREATE INDEX garden_region_job ON garden_region (job) WHERE job IS NOT NULL;

-- In which parts of the timeline a region was heard, and when.
CREATE TABLE garden_heard (
    n         INTEGER PRIMARY KEY,
    region    BLOB NOT NULL,
    artifact  BLOB,
    from_tick INTEGER NOT NULL,
    to_tick   INTEGER NOT NULL,
    at        INTEGER NOT NULL
) STRICT;

CREATE INDEX garden_heard_region ON garden_heard (region, at);
