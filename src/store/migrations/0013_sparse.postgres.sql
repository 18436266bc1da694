-- Most agents have neither identifier nor folder, and need no places in the indexes of these.
ALTER TABLE agents DROP CONSTRAINT agents_org_id_code_id_key, DROP CONSTRAINT agents_org_id_external_id_key;
DROP INDEX agents_by_folder;
CREATE INDEX agents_by_org ON agents (org_id);
CREATE UNIQUE INDEX agents_by_code_id ON agents (org_id, code_id) WHERE code_id IS NOT NULL;
CREATE UNIQUE INDEX agents_by_external_id ON agents (org_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX agents_by_folder ON agents (folder_id) WHERE folder_id IS NOT NULL;
