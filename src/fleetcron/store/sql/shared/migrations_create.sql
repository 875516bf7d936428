-- Make the table that says which migrations were applied.
CREATE TABLE IF NOT EXISTS migrations (
    number   INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,
    checksum TEXT NOT NULL,
    at_ms    BIGINT NOT NULL,
    program  TEXT NOT NULL
)
