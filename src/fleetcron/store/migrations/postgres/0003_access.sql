-- Who may use the API: keys, the sessions of people who logged in with one, and answers to requests that may be repeated.
-- No secret is here: of keys and of sessions only hashes are kept. Rows of keys are never removed: they say who a name in
-- the history was.

CREATE TABLE access_keys (
    key_id          TEXT PRIMARY KEY,      -- the public part of the key
    digest          TEXT NOT NULL,         -- SHA-256 of the whole key
    name            TEXT NOT NULL,
    role            TEXT NOT NULL,
    tenant          TEXT,                  -- NULL: all tenants
    pools           TEXT NOT NULL,         -- JSON: where a worker may claim
    rate_per_minute BIGINT,                -- NULL: what the API's settings say
    created_ms      BIGINT NOT NULL,
    created_by      TEXT NOT NULL,
    expires_ms      BIGINT,
    revoked_ms      BIGINT,
    revoked_by      TEXT,
    revoked_why     TEXT,
    last_used_ms    BIGINT                 -- at most a minute old
) WITH (fillfactor = 80);
-- A name is free again when its key is revoked, so that a key can be replaced under its name.
CREATE UNIQUE INDEX access_keys_by_name ON access_keys (coalesce(tenant, ''), name) WHERE revoked_ms IS NULL;

CREATE TABLE access_sessions (
    digest     TEXT PRIMARY KEY,           -- SHA-256 of what the browser keeps
    key_id     TEXT NOT NULL,              -- of the key that it began with, and ends with
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL
);
CREATE INDEX access_sessions_by_end ON access_sessions (expires_ms);

CREATE TABLE idempotency (
    scope       TEXT NOT NULL,             -- whose keys these are
    key         TEXT NOT NULL,             -- of the client
    request     TEXT NOT NULL,             -- hash of what was asked
    owner       TEXT NOT NULL,             -- who works on it: nobody else may finish it
    started_ms  BIGINT NOT NULL,
    finished_ms BIGINT,
    status      INTEGER,
    headers     TEXT,                      -- JSON
    body        BYTEA,                     -- NULL: it was too long to be kept
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_by_start ON idempotency (started_ms);
