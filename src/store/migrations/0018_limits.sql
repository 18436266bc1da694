-- Limits of an organization, as JSON; null: none were stored.
ALTER TABLE organizations ADD COLUMN limits TEXT;

-- People who use keys, by name.
CREATE TABLE users (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    UNIQUE (org_id, name)
);

-- User of a key; null: it was made without one.
ALTER TABLE api_keys ADD COLUMN user_id TEXT;

-- Author of a row: a user, or a key without one; null: it is not known.
ALTER TABLE agents ADD COLUMN created_by TEXT;
ALTER TABLE agent_versions ADD COLUMN created_by TEXT;
ALTER TABLE folders ADD COLUMN created_by TEXT;
ALTER TABLE integrations ADD COLUMN created_by TEXT;
ALTER TABLE simulations ADD COLUMN created_by TEXT;
ALTER TABLE digital_humans ADD COLUMN created_by TEXT;
ALTER TABLE runs ADD COLUMN created_by TEXT;
ALTER TABLE results ADD COLUMN created_by TEXT;
ALTER TABLE reviews ADD COLUMN created_by TEXT;
ALTER TABLE custom_metrics ADD COLUMN created_by TEXT;
ALTER TABLE scenarios ADD COLUMN created_by TEXT;
ALTER TABLE personas ADD COLUMN created_by TEXT;
ALTER TABLE customer_traits ADD COLUMN created_by TEXT;
ALTER TABLE communities ADD COLUMN created_by TEXT;
ALTER TABLE background_noises ADD COLUMN created_by TEXT;
ALTER TABLE schedules ADD COLUMN created_by TEXT;
ALTER TABLE labels ADD COLUMN created_by TEXT;
ALTER TABLE issues ADD COLUMN created_by TEXT;
ALTER TABLE call_logs ADD COLUMN created_by TEXT;
ALTER TABLE phone_numbers ADD COLUMN created_by TEXT;
ALTER TABLE monitors ADD COLUMN created_by TEXT;
ALTER TABLE checks ADD COLUMN created_by TEXT;
ALTER TABLE alerts ADD COLUMN created_by TEXT;
ALTER TABLE notifications ADD COLUMN created_by TEXT;
ALTER TABLE webhooks ADD COLUMN created_by TEXT;
