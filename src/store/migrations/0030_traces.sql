-- Trace of each attempt of a result, by which spans of its agent are known.
CREATE TABLE traces (
    trace_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    result_id BIGINT NOT NULL REFERENCES results (id) ON DELETE CASCADE,
    attempt BIGINT NOT NULL
);
CREATE UNIQUE INDEX traces_by_result ON traces (result_id, attempt);

-- Times of the work for a conversation: recognition, thoughts, speech. No words.
CREATE TABLE effects (
    result_id BIGINT PRIMARY KEY REFERENCES results (id) ON DELETE CASCADE,
    org_id TEXT NOT NULL,
    doc TEXT NOT NULL
);

-- Spans that agents have sent. One that was posted without a trace has no span_id.
CREATE TABLE agent_spans (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    result_id BIGINT NOT NULL REFERENCES results (id) ON DELETE CASCADE,
    span_id TEXT,
    doc TEXT NOT NULL
);
CREATE UNIQUE INDEX agent_spans_by_result ON agent_spans (result_id, span_id);
