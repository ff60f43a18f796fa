-- Projects, their workspaces, and the agent sessions in those.
--
-- state of a session: 0 starting, 1 running, 2 idle, 3 ended, 4 failed, 5 interrupted. Below 3 it is
-- live.

CREATE TABLE project (
    n            INTEGER PRIMARY KEY,
    id           BLOB NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    -- The name in small letters, to search in.
    name_small   TEXT NOT NULL,
    description  TEXT,
    owner        BLOB NOT NULL,
    agent        TEXT,
    key_level    INTEGER,
    max_depth    INTEGER,
    max_agents   INTEGER,
    max_sessions INTEGER,
    idle_ms      INTEGER,
    created_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX project_owner ON project (owner);

CREATE TABLE workspace (
    n               INTEGER PRIMARY KEY,
    id              BLOB NOT NULL UNIQUE,
    project         BLOB NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    created_at      INTEGER NOT NULL,
    last_session_at INTEGER
) STRICT;

CREATE INDEX workspace_project ON workspace (project);

-- parent and root may be deleted before their descendants.
CREATE TABLE session (
    n          INTEGER PRIMARY KEY,
    id         BLOB NOT NULL UNIQUE,
    project    BLOB NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    workspace  BLOB NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    owner      BLOB NOT NULL,
    parent     BLOB,
    root       BLOB NOT NULL,
    depth      INTEGER NOT NULL,
    agent      TEXT NOT NULL,
    state      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at   INTEGER,
    key        BLOB
) STRICT;

CREATE INDEX session_state ON session (state);
CREATE INDEX session_owner ON session (owner, state);
CREATE INDEX session_project ON session (project, state);
CREATE INDEX session_owner_project ON session (owner, project, state);
CREATE INDEX session_workspace ON session (workspace, state);
CREATE INDEX session_root ON session (root);

-- The only session a token was made for.
ALTER TABLE token ADD COLUMN session BLOB;
CREATE INDEX token_session ON token (session) WHERE session IS NOT NULL;
