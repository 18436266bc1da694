-- Most agents have neither identifier nor folder, and need no places in the indexes of these. A constraint cannot be dropped here:
-- the table is made anew (sqlite.org/lang_altertable.html, 7), and goes on counting where the old one was.
CREATE TABLE agents_anew (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    code_id TEXT,
    external_id TEXT,
    folder_id TEXT REFERENCES folders (id),
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
INSERT INTO agents_anew (id, org_id, code_id, external_id, folder_id, doc, created_ms, updated_ms, updated_by)
    SELECT id, org_id, code_id, external_id, folder_id, doc, created_ms, updated_ms, updated_by FROM agents ORDER BY id;
DELETE FROM sqlite_sequence WHERE name = 'agents_anew';
INSERT INTO sqlite_sequence (name, seq) SELECT 'agents_anew', seq FROM sqlite_sequence WHERE name = 'agents';
DROP TABLE agents;
ALTER TABLE agents_anew RENAME TO agents;
CREATE INDEX agents_by_org ON agents (org_id);
CREATE UNIQUE INDEX agents_by_code_id ON agents (org_id, code_id) WHERE code_id IS NOT NULL;
CREATE UNIQUE INDEX agents_by_external_id ON agents (org_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX agents_by_folder ON agents (folder_id) WHERE folder_id IS NOT NULL;
