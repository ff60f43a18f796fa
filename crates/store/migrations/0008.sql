-- No agent is an administrator: the keys of a project's sessions have level write at most.
UPDATE project SET key_level = 1 WHERE key_level = 2;

-- The sessions that one started.
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;

-- The session whose agent started a job with its key.
ALTER TABLE job ADD COLUMN session BLOB;
