-- The settings that a conversation is held with, as they were when it was placed: rows may be changed and deleted afterwards.
CREATE TABLE settings (
    result_id BIGINT PRIMARY KEY REFERENCES results (id) ON DELETE CASCADE,
    org_id TEXT NOT NULL,
    doc TEXT NOT NULL
);
