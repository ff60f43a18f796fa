-- The type that a principal stored content with: another one's is nobody's business.
ALTER TABLE upload ADD COLUMN mime TEXT;
