-- Scenarios and what Digital Humans are made from.

CREATE TABLE scenarios (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);

CREATE TABLE scenario_agents (
    scenario_id TEXT NOT NULL REFERENCES scenarios (id) ON DELETE CASCADE,
    agent_id BIGINT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    org_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    PRIMARY KEY (scenario_id, agent_id)
);
CREATE INDEX scenarios_of_agent ON scenario_agents (agent_id);

CREATE TABLE personas (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    agent_id BIGINT,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
CREATE INDEX personas_by_agent ON personas (agent_id);

CREATE TABLE customer_traits (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    agent_id BIGINT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT,
    UNIQUE (agent_id, name)
);

CREATE TABLE communities (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);

CREATE TABLE community_digital_humans (
    community_id TEXT NOT NULL REFERENCES communities (id) ON DELETE CASCADE,
    digital_human_id BIGINT NOT NULL REFERENCES digital_humans (id) ON DELETE CASCADE,
    org_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    PRIMARY KEY (community_id, digital_human_id)
);
CREATE INDEX communities_of_digital_human ON community_digital_humans (digital_human_id);

CREATE TABLE background_noises (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);

ALTER TABLE digital_humans ADD COLUMN scenario_id TEXT;
ALTER TABLE digital_humans ADD COLUMN noise_id TEXT;
CREATE INDEX digital_humans_by_scenario ON digital_humans (scenario_id);
CREATE INDEX digital_humans_by_noise ON digital_humans (noise_id);
