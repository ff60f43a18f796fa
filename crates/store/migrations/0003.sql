-- What sessions may reach: a mode, then places with spaces between them. Of a project that says nothing,
-- and of a session whose agent is not confined, there is none.

ALTER TABLE project ADD COLUMN network TEXT;
ALTER TABLE session ADD COLUMN network TEXT;
