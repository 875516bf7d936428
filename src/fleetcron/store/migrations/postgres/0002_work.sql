-- The work: what may start, what is held, what every attempt became, and the limits that people set.
-- queue has one row for each run that is due and not held; gate says what it waits for (NULL: nothing, it may be
-- claimed). A lease is a run that somebody holds, or that rests between two attempts (no node): its key stays taken.

ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN overlap TEXT NOT NULL DEFAULT 'skip';
ALTER TABLE jobs ADD COLUMN claim_key TEXT;                       -- what only max_running runs may hold; NULL: no bound
ALTER TABLE jobs ADD COLUMN max_running INTEGER NOT NULL DEFAULT 1;
ALTER TABLE jobs ADD COLUMN start_deadline_ms BIGINT;
ALTER TABLE jobs ADD COLUMN handler TEXT NOT NULL DEFAULT '';    -- what a worker must know to run it
ALTER TABLE jobs ADD COLUMN depends INTEGER NOT NULL DEFAULT 0;     -- 1: it has upstream jobs
UPDATE jobs SET priority = CAST(definition ->> 'priority' AS INTEGER),
    overlap = definition -> 'overlap' ->> 'policy',
    claim_key = CASE WHEN definition -> 'overlap' ->> 'concurrency_key' IS NOT NULL
                         THEN 'k:' || tenant || ':' || (definition -> 'overlap' ->> 'concurrency_key')
                     WHEN definition -> 'overlap' ->> 'policy' = 'allow' AND definition -> 'overlap' ->> 'max_running' IS NULL
                         THEN NULL
                     ELSE 'j:' || job_id END,
    max_running = coalesce(CAST(definition -> 'overlap' ->> 'max_running' AS INTEGER), 1),
    depends = CASE WHEN jsonb_array_length(definition -> 'depends_on') > 0 THEN 1 ELSE 0 END;
CREATE INDEX jobs_depending ON jobs (tenant, name) WHERE depends = 1 AND deleted_ms IS NULL;

ALTER TABLE runs ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;     -- as of its last end: a lease knows better
ALTER TABLE runs ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN round INTEGER NOT NULL DEFAULT 0;       -- how often it was replayed
ALTER TABLE runs ADD COLUMN started_ms BIGINT;
ALTER TABLE runs ADD COLUMN reason TEXT;
ALTER TABLE runs ADD COLUMN covered_by BIGINT;                     -- the run that a merged one was merged into
ALTER TABLE runs ADD COLUMN payload TEXT;                        -- of a manual run; NULL: the job's
ALTER TABLE runs ADD COLUMN asked_by TEXT;                       -- who triggered, backfilled or replayed it
ALTER TABLE runs ADD COLUMN asked_key TEXT;                      -- of the client: asking again gives the same run
ALTER TABLE runs ADD COLUMN discarded_ms BIGINT;                 -- a dead letter that nobody has to look at any more
ALTER TABLE runs ADD COLUMN discarded_why TEXT;
-- A column of its own: an index that asks for the state would be written at every end of a run (PostgreSQL: no HOT).
ALTER TABLE runs ADD COLUMN dead INTEGER GENERATED ALWAYS AS (CASE WHEN state = 'dead' THEN 1 END) STORED;
CREATE INDEX runs_dead ON runs (run_id) WHERE dead = 1;
CREATE INDEX runs_dead_letters ON runs (run_id) WHERE dead = 1 AND discarded_ms IS NULL;
CREATE UNIQUE INDEX runs_asked ON runs (job_id, asked_key) WHERE asked_key IS NOT NULL;
CREATE INDEX runs_manual ON runs (job_id, scheduled_for_ms) WHERE kind = 'manual';

CREATE TABLE queue (
    run_id           BIGINT PRIMARY KEY,
    job_id           UUID NOT NULL,
    tenant           TEXT NOT NULL,
    pool             TEXT NOT NULL,
    type             TEXT NOT NULL,
    lane             TEXT NOT NULL,
    kind             TEXT NOT NULL,
    priority         INTEGER NOT NULL,
    rank             BIGINT NOT NULL,                                -- fair order between tenants (policy/fairness)
    due_ms           BIGINT NOT NULL,
    scheduled_for_ms BIGINT NOT NULL,
    deadline_ms      BIGINT,                                         -- of the first start
    overlap          TEXT NOT NULL,
    claim_key        TEXT,
    max_running      INTEGER NOT NULL,
    handler          TEXT NOT NULL,
    depends          INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    failures         INTEGER NOT NULL,
    losses           INTEGER NOT NULL,
    round            INTEGER NOT NULL,
    leased           INTEGER NOT NULL,                                -- 1: it rests between two attempts and has its key
    gate             TEXT,
    key              TEXT,
    look_ms          BIGINT,                                         -- when to look at a parked run again, at the latest
    since_ms         BIGINT
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX queue_open ON queue (pool, lane, priority, rank, run_id) WHERE gate IS NULL;
CREATE INDEX queue_parked ON queue (gate, key, scheduled_for_ms, run_id) WHERE gate IS NOT NULL;
CREATE INDEX queue_parked_in ON queue (gate, key, pool, lane, priority, scheduled_for_ms, run_id) WHERE gate IS NOT NULL;
CREATE INDEX queue_looked_at ON queue (pool, look_ms) WHERE look_ms IS NOT NULL;
CREATE INDEX queue_by_key ON queue (claim_key, scheduled_for_ms, run_id) WHERE claim_key IS NOT NULL;
CREATE INDEX queue_catchup ON queue (run_id) WHERE lane = 'catchup';
CREATE INDEX queue_deadlines ON queue (deadline_ms) WHERE deadline_ms IS NOT NULL;

-- How far each tenant has come in a pool, by lane and priority; the tenant '' is the queue itself (virtual time).
CREATE TABLE shares (
    pool     TEXT NOT NULL,
    lane     TEXT NOT NULL,
    priority INTEGER NOT NULL,
    tenant   TEXT NOT NULL,
    rank     BIGINT NOT NULL,
    PRIMARY KEY (pool, lane, priority, tenant)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX shares_queues ON shares (pool, lane, priority) WHERE tenant = '';

-- Who may hold runs. All leases of a node live and die with its row: one renewal, whatever it holds.
CREATE TABLE workers (
    node_id    TEXT PRIMARY KEY,
    process    TEXT NOT NULL,                                      -- host, boot, pid and start: is it still there?
    pools      TEXT NOT NULL,                                      -- JSON: slots by pool
    lacks      TEXT NOT NULL,                                      -- JSON: handlers that it was asked for and has not, and why
    beat       BIGINT NOT NULL,
    batch      TEXT NOT NULL,                                      -- the last claim
    started_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL
);

CREATE TABLE leases (
    run_id           BIGINT PRIMARY KEY,
    attempt          INTEGER NOT NULL,                                -- of the attempt that runs; between two: the last one
    node_id          TEXT,
    batch            TEXT,
    job_id           UUID NOT NULL,
    tenant           TEXT NOT NULL,
    pool             TEXT NOT NULL,
    type             TEXT NOT NULL,
    lane             TEXT NOT NULL,
    kind             TEXT NOT NULL,
    due_ms           BIGINT NOT NULL,
    scheduled_for_ms BIGINT NOT NULL,
    deadline_ms      BIGINT,
    overlap          TEXT NOT NULL,
    claim_key        TEXT,
    slot             INTEGER NOT NULL,
    claimed_ms       BIGINT NOT NULL,
    failures         INTEGER NOT NULL,
    losses           INTEGER NOT NULL,
    round            INTEGER NOT NULL,
    cancel           TEXT,                                         -- why it was asked to stop
    progress         DOUBLE PRECISION,
    note             TEXT
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- The promise: no overlap unless allowed.
CREATE UNIQUE INDEX leases_exclusive ON leases (claim_key, slot) WHERE claim_key IS NOT NULL;
CREATE INDEX leases_of_node ON leases (node_id, batch) WHERE node_id IS NOT NULL;

CREATE TABLE attempts (
    run_id      BIGINT NOT NULL,
    attempt     INTEGER NOT NULL,
    node_id     TEXT NOT NULL,
    started_ms  BIGINT NOT NULL,
    finished_ms BIGINT NOT NULL,
    outcome     TEXT NOT NULL,
    error_code  TEXT,
    error_text  TEXT,
    trace       TEXT,
    result      TEXT,                                              -- JSON
    log_bytes   BIGINT NOT NULL,
    PRIMARY KEY (run_id, attempt)
);
CREATE TABLE attempt_logs (
    run_id    BIGINT NOT NULL,
    attempt   INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    at_ms     BIGINT NOT NULL,
    truncated INTEGER NOT NULL,
    text      TEXT NOT NULL,
    PRIMARY KEY (run_id, attempt, seq)
);

CREATE TABLE tenants (
    tenant        TEXT PRIMARY KEY,
    weight        INTEGER NOT NULL,
    max_jobs      BIGINT,
    max_in_flight BIGINT,
    rate_per_s    DOUBLE PRECISION,
    burst         BIGINT NOT NULL,
    max_payload   BIGINT NOT NULL,
    updated_ms    BIGINT NOT NULL
);
-- When the next start of a tenant with a rate is allowed, in microseconds (GCRA).
CREATE TABLE rates (
    tenant  TEXT PRIMARY KEY,
    next_us BIGINT NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE pools (
    pool       TEXT PRIMARY KEY,
    slots      BIGINT,                                               -- of the whole fleet; NULL: those of its workers
    per_tenant BIGINT,
    per_type   TEXT NOT NULL,                                      -- JSON: runs in flight by type
    updated_ms BIGINT NOT NULL
);
-- What was switched in an incident, for a time: of a tenant, a pool or a type.
CREATE TABLE controls (
    scope      TEXT NOT NULL,
    name       TEXT NOT NULL,
    percent    INTEGER NOT NULL,                                      -- of the runs that may start; 0: paused
    retries    INTEGER,                                               -- attempts at most
    backoff    DOUBLE PRECISION NOT NULL,                                    -- delays are so many times longer
    until_ms   BIGINT,
    reason     TEXT NOT NULL,
    actor      TEXT NOT NULL,
    updated_ms BIGINT NOT NULL,
    PRIMARY KEY (scope, name)
);
