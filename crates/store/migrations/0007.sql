-- The MIME type that a principal stored content with. It is kept for each principal, and not shown to
-- others.
ALTER TABLE upload ADD COLUMN mime TEXT;
