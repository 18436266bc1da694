-- Sweeps look for call logs of one status.
CREATE INDEX call_logs_by_status ON call_logs (status, updated_ms);

-- Text messages that follow a call look for calls that are over.
CREATE INDEX results_by_change ON results (status, updated_ms);
DROP INDEX results_by_status;

-- The line with which a Digital Human begins every conversation (every one of a step of its journey, else 0), and a digest of
-- what it was made of.
CREATE TABLE openings (
    digital_human_id BIGINT NOT NULL REFERENCES digital_humans (id) ON DELETE CASCADE,
    step BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    made_of TEXT NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (digital_human_id, step)
);

-- What was not given was written down as the default. A conversation that is written has no limit then.
UPDATE simulations SET doc = REPLACE(doc, '"max_call_duration":10,"max_call_duration_units":"minutes"', '"max_call_duration_units":"minutes"');
