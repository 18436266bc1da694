-- The engine that carries a request out, as long as it has no answer; empty in rows of before.
ALTER TABLE idempotency ADD COLUMN engine TEXT;
