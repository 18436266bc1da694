-- Engines that work on this database, each from its start to its end. A dead one has stopped to renew its lease.
CREATE TABLE engines (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    address TEXT,
    sip TEXT,
    started_ms BIGINT NOT NULL,
    heartbeat_ms BIGINT NOT NULL,
    lease_ms BIGINT NOT NULL,
    capacity BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    draining BIGINT NOT NULL DEFAULT 0
);
-- Results whose call an engine makes or holds.
CREATE TABLE holds (
    result_id BIGINT PRIMARY KEY,
    org_id TEXT NOT NULL,
    engine TEXT NOT NULL
);
CREATE INDEX holds_by_engine ON holds (engine);
-- The engine that is registered at each trunk.
CREATE TABLE line_holders (
    trunk TEXT PRIMARY KEY,
    engine TEXT NOT NULL,
    lease_ms BIGINT NOT NULL
);
-- The engine that has claimed a job last; NULL: none, or one of an earlier release.
ALTER TABLE jobs ADD COLUMN engine TEXT;
