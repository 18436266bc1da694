-- Numbers of the trunks in the settings, with the time at which an engine first saw each. Their ids lie beyond those of
-- phone_numbers, with which they are listed. A row stays when its number leaves the settings, so that its id stays too.
CREATE TABLE trunk_numbers (
    id BIGINT PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    created_ms BIGINT NOT NULL
);
