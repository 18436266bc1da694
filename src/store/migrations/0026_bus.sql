-- The key by which engines of this database sign their messages to each other; sealed.
CREATE TABLE bus (
    id BIGINT PRIMARY KEY,
    key TEXT NOT NULL
);
-- Jobs that a worker may claim: an engine without a bus looks at them each second.
CREATE INDEX jobs_to_claim ON jobs (due_ms) WHERE held = 0 AND lease_ms IS NULL;
