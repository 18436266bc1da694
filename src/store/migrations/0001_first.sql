-- {SERIAL} is the integer key of the database in use. Times are milliseconds since 1970, documents are JSON text.

CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_ms BIGINT NOT NULL
);

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    hash TEXT NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    revoked BIGINT NOT NULL DEFAULT 0,
    created_ms BIGINT NOT NULL
);

CREATE TABLE folders (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT,
    UNIQUE (org_id, name)
);

CREATE TABLE integrations (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL UNIQUE REFERENCES organizations (id) ON DELETE CASCADE,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);

CREATE TABLE agents (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    code_id TEXT,
    external_id TEXT,
    folder_id TEXT REFERENCES folders (id),
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT,
    UNIQUE (org_id, code_id),
    UNIQUE (org_id, external_id)
);
CREATE INDEX agents_by_folder ON agents (folder_id);

CREATE TABLE agent_versions (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    agent_id BIGINT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    production BIGINT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT,
    UNIQUE (agent_id, version)
);

CREATE TABLE labels (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    agent_id BIGINT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    label_text TEXT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT,
    UNIQUE (agent_id, label_text)
);

CREATE TABLE simulations (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    agent_id BIGINT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    code_id TEXT,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT,
    UNIQUE (org_id, code_id)
);
CREATE INDEX simulations_by_agent ON simulations (agent_id);

CREATE TABLE digital_humans (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    code_id TEXT,
    test_name TEXT,
    listens_on TEXT,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT,
    UNIQUE (org_id, code_id)
);
CREATE INDEX digital_humans_by_test_name ON digital_humans (org_id, test_name);
CREATE INDEX digital_humans_by_number ON digital_humans (listens_on);

CREATE TABLE simulation_digital_humans (
    simulation_id BIGINT NOT NULL REFERENCES simulations (id) ON DELETE CASCADE,
    digital_human_id BIGINT NOT NULL REFERENCES digital_humans (id) ON DELETE CASCADE,
    org_id TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (simulation_id, digital_human_id)
);
CREATE INDEX simulations_of_digital_human ON simulation_digital_humans (digital_human_id);

CREATE TABLE runs (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    simulation_id BIGINT NOT NULL REFERENCES simulations (id) ON DELETE CASCADE,
    agent_id BIGINT NOT NULL,
    status TEXT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
CREATE INDEX runs_by_simulation ON runs (simulation_id);

CREATE TABLE results (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    run_id BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    simulation_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    digital_human_id BIGINT,
    status TEXT NOT NULL,
    outcome TEXT,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
CREATE INDEX results_by_run ON results (run_id, status, outcome);
CREATE INDEX results_by_simulation ON results (simulation_id, status);
CREATE INDEX results_by_agent ON results (agent_id, status);
CREATE INDEX results_by_digital_human ON results (digital_human_id);

CREATE TABLE timelines (
    result_id BIGINT PRIMARY KEY REFERENCES results (id) ON DELETE CASCADE,
    org_id TEXT NOT NULL,
    doc TEXT NOT NULL
);

CREATE TABLE transcripts (
    result_id BIGINT PRIMARY KEY REFERENCES results (id) ON DELETE CASCADE,
    org_id TEXT NOT NULL,
    doc TEXT NOT NULL
);

CREATE TABLE jobs (
    id {SERIAL},
    kind TEXT NOT NULL,
    job_key TEXT NOT NULL UNIQUE,
    payload TEXT NOT NULL,
    due_ms BIGINT NOT NULL,
    lease_ms BIGINT,
    attempts BIGINT NOT NULL DEFAULT 0,
    lane TEXT,
    lane_limit BIGINT,
    held BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX jobs_by_due ON jobs (kind, held, due_ms);
CREATE INDEX jobs_by_lane ON jobs (lane, held);

CREATE TABLE idempotency (
    org_id TEXT NOT NULL,
    route TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    status BIGINT,
    body TEXT,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (org_id, route, idempotency_key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_ms);
