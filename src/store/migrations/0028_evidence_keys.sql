-- Keys by which this installation signs evidence. The newest without an end signs; its seed is sealed.
CREATE TABLE evidence_keys (
    public_key TEXT PRIMARY KEY,
    seed TEXT NOT NULL,
    made_ms BIGINT NOT NULL,
    ended_ms BIGINT
);
