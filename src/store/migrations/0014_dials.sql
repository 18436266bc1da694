-- Numbers that were dialled through trunks: those whose calls are made or up, and those of the last seconds, by which rates are told.
-- A row refers to no result: it counts for as long as its call may last, though the result is deleted.
CREATE TABLE dials (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    result_id BIGINT NOT NULL,
    trunk TEXT NOT NULL,
    caller TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    until_ms BIGINT NOT NULL,
    live BIGINT NOT NULL,
    day TEXT NOT NULL,
    reserved_ms BIGINT NOT NULL
);
CREATE INDEX dials_by_trunk ON dials (trunk, at_ms);
CREATE INDEX dials_by_org ON dials (org_id, at_ms);
CREATE INDEX dials_by_result ON dials (result_id);

-- Milliseconds of conversation that are reserved or used on a day (UTC), of a trunk or of an organization.
CREATE TABLE dial_days (
    scope TEXT NOT NULL,
    day TEXT NOT NULL,
    used_ms BIGINT NOT NULL,
    PRIMARY KEY (scope, day)
);
