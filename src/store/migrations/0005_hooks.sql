-- Webhooks, the events that wait to be told, and what was told.

CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    enabled BIGINT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
CREATE INDEX webhooks_by_organization ON webhooks (org_id, enabled);

-- One row a webhook and event. Events of one subject are told in the order of their ids.
CREATE TABLE outbox (
    id {SERIAL},
    org_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event_id TEXT NOT NULL,
    event TEXT NOT NULL,
    subject TEXT,
    body TEXT NOT NULL,
    due_ms BIGINT NOT NULL,
    lease_ms BIGINT,
    attempts BIGINT NOT NULL DEFAULT 0,
    created_ms BIGINT NOT NULL
);
CREATE INDEX outbox_by_due ON outbox (due_ms);
CREATE INDEX outbox_by_age ON outbox (created_ms);
CREATE INDEX outbox_by_subject ON outbox (webhook_id, subject);
CREATE INDEX outbox_by_lease ON outbox (webhook_id, lease_ms);

CREATE TABLE deliveries (
    seq {SERIAL},
    id TEXT NOT NULL UNIQUE,
    org_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event TEXT NOT NULL,
    event_id TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    status BIGINT,
    error TEXT,
    at_ms BIGINT NOT NULL,
    body_sha256 TEXT NOT NULL
);
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, at_ms);

-- Under which key the secrets of this database are sealed, and a text to try it on.
CREATE TABLE vault (
    id BIGINT PRIMARY KEY,
    key_name TEXT NOT NULL,
    probe TEXT NOT NULL
);

-- Simulations that run by themselves, and when they are due next.
CREATE TABLE schedules (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    simulation_id BIGINT NOT NULL REFERENCES simulations (id) ON DELETE CASCADE,
    next_ms BIGINT,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
CREATE INDEX schedules_by_simulation ON schedules (simulation_id);

-- Sweeps look for results of one status.
CREATE INDEX results_by_status ON results (status);

-- Conversation time used, a row a month (2026-01, UTC).
CREATE TABLE usage_months (
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    month TEXT NOT NULL,
    used_ms BIGINT NOT NULL,
    PRIMARY KEY (org_id, month)
);
