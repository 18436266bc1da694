-- Lists of runs show and filter by these of their results, without a look into the documents. Null: there is none.
ALTER TABLE results ADD COLUMN latency TEXT;
ALTER TABLE results ADD COLUMN tags TEXT;
UPDATE results SET latency = json_extract(doc, '$.body.latency') WHERE json_array_length(doc, '$.body.latency') > 0;
UPDATE results SET tags = json_extract(doc, '$.body.tags') WHERE json_array_length(doc, '$.body.tags') > 0;
CREATE INDEX runs_by_org ON runs (org_id, id);

-- Changes that people made to evaluations: who, when, which values before and after.
CREATE TABLE reviews (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    result_id BIGINT NOT NULL REFERENCES results (id) ON DELETE CASCADE,
    doc TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    updated_by TEXT
);
CREATE INDEX reviews_by_result ON reviews (result_id);
