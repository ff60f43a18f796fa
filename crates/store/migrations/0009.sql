-- The garden's timeline. Positions and lengths are in ticks, 960 to the quarter note.

-- One row: the number of changes so far.
CREATE TABLE garden (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL
) STRICT;

INSERT INTO garden (one, revision) VALUES (1, 0);

CREATE TABLE garden_region (
    n              INTEGER PRIMARY KEY,
    id             BLOB NOT NULL UNIQUE,
    owner          BLOB NOT NULL,
    project        BLOB,
    position       INTEGER NOT NULL,
    duration       INTEGER NOT NULL,
    artifact       BLOB,
    content_hash   BLOB NOT NULL,
    mime_type      TEXT NOT NULL,
    gain_db        REAL NOT NULL,
    pan            REAL NOT NULL,
    offset_seconds REAL NOT NULL,
    fade_in        INTEGER NOT NULL,
    fade_out       INTEGER NOT NULL,
    name           TEXT,
    tags           BLOB NOT NULL,
    created_at     INTEGER NOT NULL
) STRICT;

CREATE INDEX garden_region_position ON garden_region (position);

CREATE TABLE garden_tempo (
    at            INTEGER PRIMARY KEY,
    bpm           REAL NOT NULL,
    beats_per_bar INTEGER NOT NULL,
    beat_unit     INTEGER NOT NULL
) STRICT;
