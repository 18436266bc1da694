-- Lists of runs show and filter by these of their results, without a look into the documents. Null: there is none.
ALTER TABLE results ADD COLUMN latency TEXT;
ALTER TABLE results ADD COLUMN tags TEXT;
UPDATE results SET latency = doc::json #>> '{body,latency}' WHERE CASE WHEN json_typeof(doc::json #> '{body,latency}') = 'array'
    THEN json_array_length(doc::json #> '{body,latency}') > 0 ELSE FALSE END;
UPDATE results SET tags = doc::json #>> '{body,tags}' WHERE CASE WHEN json_typeof(doc::json #> '{body,tags}') = 'array'
    THEN json_array_length(doc::json #> '{body,tags}') > 0 ELSE FALSE END;
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
