-- State of conversations by mail between two messages: what is said, what is still to be sent, when something is due.
CREATE TABLE mail_threads (
    result_id BIGINT PRIMARY KEY REFERENCES results (id) ON DELETE CASCADE,
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    token TEXT NOT NULL,
    doc TEXT NOT NULL
);

-- Mails of conversations, received and sent. The raw text is base64; null: it is not kept.
CREATE TABLE mails (
    id {SERIAL},
    org_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    result_id BIGINT NOT NULL REFERENCES results (id) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    message_id TEXT NOT NULL,
    doc TEXT NOT NULL,
    raw TEXT,
    at_ms BIGINT NOT NULL
);
CREATE INDEX mails_by_result ON mails (result_id, id);
