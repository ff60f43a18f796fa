-- The image of a project's sessions and container: its name in the configuration, or any other image
-- as the engine knows it. A project has at most one of the two.

ALTER TABLE project ADD COLUMN image_name TEXT;
ALTER TABLE project ADD COLUMN image_reference TEXT;
