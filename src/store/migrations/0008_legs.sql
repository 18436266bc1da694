-- Addresses that results are called on: held by one result at a time, waited for by others.

CREATE TABLE legs (
    address TEXT NOT NULL,
    result_id BIGINT NOT NULL REFERENCES results (id) ON DELETE CASCADE,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    held BIGINT NOT NULL,
    since_ms BIGINT NOT NULL,
    PRIMARY KEY (address, result_id)
);
CREATE INDEX legs_by_result ON legs (result_id);
