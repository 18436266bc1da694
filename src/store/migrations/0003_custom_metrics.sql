-- Custom metrics, and the agents whose conversations they judge, in the order in which they were given.

CREATE TABLE custom_metrics (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    code_id TEXT,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT,
    UNIQUE (org_id, code_id)
);

CREATE TABLE agent_metrics (
    agent_id BIGINT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    metric_id TEXT NOT NULL REFERENCES custom_metrics (id) ON DELETE CASCADE,
    org_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (agent_id, metric_id)
);
CREATE INDEX agents_of_metric ON agent_metrics (metric_id, position);
