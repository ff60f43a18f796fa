-- Network policies of sessions: a mode and its destinations, separated by spaces. NULL for a project
-- without a policy, and for a session whose agent is not confined.

ALTER TABLE project ADD COLUMN network TEXT;
ALTER TABLE session ADD COLUMN network TEXT;
