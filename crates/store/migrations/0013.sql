-- What was chosen for a session when it started, instead of what is configured (NULL: nothing).
ALTER TABLE session ADD COLUMN provider TEXT;
ALTER TABLE session ADD COLUMN model TEXT;
ALTER TABLE session ADD COLUMN permissions TEXT;
