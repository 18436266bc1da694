-- Report cards of judges. The key is that of a model with a version of its prompt.
CREATE TABLE judge_cards (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    judge_key TEXT NOT NULL,
    status TEXT NOT NULL,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    created_by TEXT,
    updated_by TEXT
);
CREATE INDEX judge_cards_by_judge ON judge_cards (org_id, judge_key, created_ms);
