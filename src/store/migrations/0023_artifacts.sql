-- Files in an object store. An owner is the folder of a result or a production call, or an uploaded noise.
CREATE TABLE artifacts (
    path TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    stored_ms BIGINT NOT NULL
);
CREATE INDEX artifacts_by_owner ON artifacts (owner);
-- Data folders of engines, with the time at which an engine last worked in each.
CREATE TABLE places (
    id TEXT PRIMARY KEY,
    seen_ms BIGINT NOT NULL
);
-- The data folder that a job needs; NULL: any engine does it.
ALTER TABLE jobs ADD COLUMN place TEXT;
