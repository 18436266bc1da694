-- Use of language models by a result, or by a run itself (result_id 0). nano_usd: cost in billionths of a USD; null: it is not
-- known.
CREATE TABLE model_usage (
    result_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    section TEXT NOT NULL,
    model TEXT NOT NULL,
    requests BIGINT NOT NULL,
    unreported BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    nano_usd BIGINT,
    PRIMARY KEY (run_id, result_id, section, model)
);
CREATE INDEX model_usage_by_result ON model_usage (result_id);

-- Cost of the models of a section of the settings on a day (UTC), over all organizations.
CREATE TABLE model_days (
    section TEXT NOT NULL,
    day TEXT NOT NULL,
    nano_usd BIGINT NOT NULL,
    PRIMARY KEY (section, day)
);

-- Organization whose turn a job is; empty: jobs of its kind are done in the order in which they are due.
ALTER TABLE jobs ADD COLUMN org_id TEXT NOT NULL DEFAULT '';
CREATE INDEX jobs_by_org ON jobs (kind, org_id);
