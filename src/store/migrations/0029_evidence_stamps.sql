-- Answers of the time-stamping authority (RFC 3161) over manifests of evidence, base64.
CREATE TABLE evidence_stamps (
    result_id BIGINT NOT NULL REFERENCES results (id) ON DELETE CASCADE,
    manifest_sha256 TEXT NOT NULL,
    stamp TEXT NOT NULL,
    made_ms BIGINT NOT NULL,
    PRIMARY KEY (result_id, manifest_sha256)
);
