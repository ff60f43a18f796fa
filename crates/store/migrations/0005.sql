-- Answers to permission requests: a line with the answer if no rule matches, and one for each rule.
-- NULL for a project without answers.

ALTER TABLE project ADD COLUMN permissions TEXT;
