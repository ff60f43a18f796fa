-- What is answered when agents ask for permission: a line for what holds where no rule fits, and one for each
-- rule. Of a project that says nothing there is none.

ALTER TABLE project ADD COLUMN permissions TEXT;
