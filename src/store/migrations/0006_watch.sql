CREATE TABLE issues (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    agent_id BIGINT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    group_key TEXT NOT NULL,
    status TEXT NOT NULL,
    priority TEXT,
    assignee_id TEXT,
    last_seen_ms BIGINT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT,
    UNIQUE (org_id, group_key)
);
CREATE INDEX issues_by_time ON issues (org_id, last_seen_ms);

CREATE TABLE failures (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    agent_id BIGINT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    group_key TEXT NOT NULL,
    judged BIGINT NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    message TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    UNIQUE (org_id, source, source_id, fingerprint)
);
CREATE INDEX failures_by_group ON failures (org_id, group_key, id);
CREATE INDEX failures_by_agent ON failures (agent_id, judged, id);

CREATE TABLE call_logs (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    agent_id BIGINT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    label TEXT NOT NULL,
    status TEXT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
CREATE INDEX call_logs_by_agent ON call_logs (agent_id, created_ms);

CREATE TABLE phone_numbers (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    number TEXT NOT NULL UNIQUE,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);

CREATE TABLE monitors (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    agent_id BIGINT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    simulation_id BIGINT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
CREATE INDEX monitors_by_agent ON monitors (agent_id);
CREATE INDEX monitors_by_simulation ON monitors (simulation_id);

CREATE TABLE checks (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    monitor_id TEXT NOT NULL REFERENCES monitors (id) ON DELETE CASCADE,
    result_id BIGINT,
    is_finished BIGINT NOT NULL,
    verdict TEXT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
CREATE INDEX checks_by_monitor ON checks (monitor_id, created_ms);
CREATE INDEX checks_by_result ON checks (result_id);

CREATE TABLE alerts (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);

CREATE TABLE violations (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    alert_id TEXT NOT NULL REFERENCES alerts (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    value TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    UNIQUE (alert_id, source, source_id)
);
CREATE INDEX violations_by_time ON violations (alert_id, at_ms);

CREATE TABLE notifications (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,
    status TEXT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
CREATE INDEX notifications_by_subject ON notifications (org_id, subject);
