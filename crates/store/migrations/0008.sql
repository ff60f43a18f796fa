-- No agent is an administrator: session keys have at most the scope write.
UPDATE project SET key_level = 1 WHERE key_level = 2;

-- The children of a session.
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;

-- The session whose agent started a job with its session key.
ALTER TABLE job ADD COLUMN session BLOB;
