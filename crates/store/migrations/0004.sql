-- What the sessions and the container of a project run in: an image by its name in the configuration, or any
-- other as the engine knows it. A project has at most one of the two.

ALTER TABLE project ADD COLUMN image_name TEXT;
ALTER TABLE project ADD COLUMN image_reference TEXT;
