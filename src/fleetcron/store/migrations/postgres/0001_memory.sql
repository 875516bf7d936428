-- Jobs, ticks, runs, the ledger, and who plans them.
-- Tables by temperature: jobs is wide and rarely written, cursors narrow and written at every tick; runs is written at
-- creation and once at the end. Time is BIGINT milliseconds UTC. No foreign keys on the hot tables: rows of jobs are never
-- removed (a deleted job keeps its history), and a check per run would cost as much as the run.

CREATE FUNCTION db_now_us() RETURNS BIGINT LANGUAGE sql VOLATILE PARALLEL SAFE
    AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;
CREATE FUNCTION db_now_ms() RETURNS BIGINT LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN db_now_us() / 1000;  -- bound now, whatever the search path of a caller is

CREATE TABLE fleet (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE jobs (
    job_id     UUID PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    type       TEXT NOT NULL,
    pool       TEXT NOT NULL,
    region     TEXT NOT NULL,              -- home region, or *
    state      TEXT NOT NULL,
    on_resume  TEXT,                       -- what a paused job does about the paused window
    problem    TEXT,                       -- why an active job has no ticks
    revision   INTEGER NOT NULL,
    definition JSONB NOT NULL,
    managed_by TEXT,
    created_by TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    deleted_ms BIGINT
);
CREATE UNIQUE INDEX jobs_by_name ON jobs (tenant, name) WHERE deleted_ms IS NULL;
CREATE INDEX jobs_by_type ON jobs (type, tenant, name) WHERE deleted_ms IS NULL;
CREATE INDEX jobs_by_state ON jobs (state, tenant, name) WHERE deleted_ms IS NULL;

CREATE TABLE job_revisions (
    job_id     UUID NOT NULL,
    revision   INTEGER NOT NULL,
    at_ms      BIGINT NOT NULL,
    actor      TEXT NOT NULL,
    action     TEXT NOT NULL,
    timing_id  BIGINT NOT NULL,
    before     JSONB,
    after      JSONB,
    PRIMARY KEY (job_id, revision)
);

-- Everything that decides the ticks of a job, by content: a million jobs share a few rows.
CREATE TABLE timings (
    timing_id BIGINT PRIMARY KEY,
    body      TEXT NOT NULL
);
-- Which zones and calendars a timing asks.
CREATE TABLE timing_parts (
    kind      TEXT NOT NULL,
    tenant    TEXT NOT NULL,
    name      TEXT NOT NULL,
    timing_id BIGINT NOT NULL,
    PRIMARY KEY (kind, tenant, name, timing_id)
);

-- Zone tables and calendars, by name and epoch. What a run or ledger row was computed with is its epoch.
CREATE TABLE almanac_epoch (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    epoch BIGINT NOT NULL
);
INSERT INTO almanac_epoch (one, epoch) VALUES (1, 1);
CREATE TABLE almanac (
    kind     TEXT NOT NULL,
    tenant   TEXT NOT NULL,                -- '' for zones
    name     TEXT NOT NULL,
    epoch    BIGINT NOT NULL,              -- valid from this epoch on, until a row with a higher one
    hash     TEXT NOT NULL,
    release  TEXT NOT NULL,
    noted_ms BIGINT NOT NULL,
    PRIMARY KEY (kind, tenant, name, epoch)
);
CREATE TABLE almanac_bodies (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE cursors (
    job_id      UUID PRIMARY KEY,
    region      TEXT NOT NULL,
    shard       INTEGER NOT NULL,
    state       TEXT NOT NULL,             -- of the job
    timing_id   BIGINT NOT NULL,
    revision    INTEGER NOT NULL,
    cursor_ms   BIGINT NOT NULL,           -- every tick up to here is decided, or belongs to a gap
    ticks_used  BIGINT NOT NULL,           -- towards max_ticks; 0 without
    next_due_ms BIGINT                     -- when the scheduler has to look again; NULL: never
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX cursors_due ON cursors (region, shard, next_due_ms) WHERE next_due_ms IS NOT NULL;

CREATE TABLE runs (
    run_id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id           UUID NOT NULL,
    scheduled_for_ms BIGINT NOT NULL,
    run_after_ms     BIGINT NOT NULL,
    created_ms       BIGINT NOT NULL,
    finished_ms      BIGINT,
    window_from_ms   BIGINT,
    window_to_ms     BIGINT,
    almanac          BIGINT NOT NULL,
    covers           INTEGER NOT NULL,
    revision         INTEGER NOT NULL,
    kind             TEXT NOT NULL,
    lane             TEXT NOT NULL,
    state            TEXT NOT NULL
) WITH (fillfactor = 70);
-- The promise: one run per tick. A manual run never takes the identity of a tick.
CREATE UNIQUE INDEX runs_one_per_tick ON runs (job_id, scheduled_for_ms) WHERE kind <> 'manual';

-- Planned runs on their way: by the instant at which they may start.
CREATE TABLE upcoming (
    run_after_ms BIGINT NOT NULL,
    run_id       BIGINT NOT NULL,
    job_id       UUID NOT NULL,
    lane         TEXT NOT NULL,
    PRIMARY KEY (run_after_ms, run_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- How much catch-up is on its way.
CREATE INDEX upcoming_catchup ON upcoming (run_id) WHERE lane = 'catchup';

CREATE TABLE ledger (
    entry_id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id        UUID NOT NULL,
    from_ms       BIGINT NOT NULL,         -- the first and the last tick, both included
    to_ms         BIGINT NOT NULL,
    ticks         BIGINT NOT NULL,
    answer        TEXT NOT NULL,
    reason        TEXT NOT NULL,
    covered_by_ms BIGINT,                  -- the tick whose run stands for these
    revision      INTEGER NOT NULL,
    almanac       BIGINT NOT NULL,
    noted_ms      BIGINT NOT NULL
);
CREATE UNIQUE INDEX ledger_by_tick ON ledger (job_id, from_ms);

CREATE TABLE gaps (
    gap_id     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id     UUID NOT NULL,
    region     TEXT NOT NULL,
    shard      INTEGER NOT NULL,
    from_ms    BIGINT NOT NULL,            -- the ticks in (from, to]
    to_ms      BIGINT NOT NULL,
    cause      TEXT NOT NULL,
    policy     TEXT,                       -- NULL: the misfire policy of the timing
    revision   INTEGER NOT NULL,
    timing_id  BIGINT NOT NULL,
    almanac    BIGINT NOT NULL,
    noticed_ms BIGINT,                     -- when it was to be decided; NULL: not yet (a paused job was edited)
    trimmed    INTEGER NOT NULL            -- 1: what the window and the limit drop is in the ledger already
);
CREATE INDEX gaps_open ON gaps (region, shard, gap_id) WHERE noticed_ms IS NOT NULL;
CREATE INDEX gaps_by_job ON gaps (job_id, from_ms);

CREATE TABLE nodes (
    node_id         TEXT PRIMARY KEY,
    host            TEXT NOT NULL,
    pid             BIGINT NOT NULL,
    roles           TEXT NOT NULL,
    region          TEXT NOT NULL,
    version         TEXT NOT NULL,
    zone_release    TEXT NOT NULL,
    started_ms      BIGINT NOT NULL,
    seen_ms         BIGINT NOT NULL,
    expires_ms      BIGINT NOT NULL,
    clock_offset_ms BIGINT NOT NULL
);
-- The term lives apart from the lease: only a take-over updates it, so that checking it does not wait for heartbeats.
CREATE TABLE shard_terms (
    region TEXT NOT NULL,
    shard  INTEGER NOT NULL,
    term   BIGINT NOT NULL,
    PRIMARY KEY (region, shard)
);
CREATE TABLE shard_leases (
    region     TEXT NOT NULL,
    shard      INTEGER NOT NULL,
    node_id    TEXT NOT NULL,
    term       BIGINT NOT NULL,
    taken_ms   BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    PRIMARY KEY (region, shard)
) WITH (fillfactor = 50);

CREATE TABLE events (
    event_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms    BIGINT NOT NULL,
    kind     TEXT NOT NULL,
    count    BIGINT NOT NULL,
    job_id   UUID,
    node_id  TEXT,
    actor    TEXT,
    detail   JSONB NOT NULL
);
CREATE INDEX events_by_kind ON events (kind, at_ms);
CREATE INDEX events_by_job ON events (job_id, at_ms) WHERE job_id IS NOT NULL;

-- For people: the same with instants that can be read. Programs use the tables.
CREATE VIEW jobs_for_people AS
SELECT j.tenant, j.name, j.state, to_timestamp(c.next_due_ms / 1000.0) AS looked_at_next, to_timestamp(c.cursor_ms / 1000.0) AS decided_until, j.type, j.pool, j.region, j.revision,
       j.problem, j.created_by, to_timestamp(j.created_ms / 1000.0) AS created_at, to_timestamp(j.updated_ms / 1000.0) AS updated_at, j.job_id
FROM jobs AS j LEFT JOIN cursors AS c ON c.job_id = j.job_id
WHERE j.deleted_ms IS NULL;
CREATE VIEW runs_for_people AS
SELECT j.tenant, j.name, to_timestamp(r.scheduled_for_ms / 1000.0) AS scheduled_for, to_timestamp(r.run_after_ms / 1000.0) AS run_after, r.state, r.kind, r.lane, r.covers,
       to_timestamp(r.created_ms / 1000.0) AS created_at, to_timestamp(r.finished_ms / 1000.0) AS finished_at, r.revision, r.almanac, r.run_id, r.job_id
FROM runs AS r JOIN jobs AS j ON j.job_id = r.job_id;
CREATE VIEW ledger_for_people AS
SELECT j.tenant, j.name, to_timestamp(l.from_ms / 1000.0) AS first_tick, to_timestamp(l.to_ms / 1000.0) AS last_tick, l.ticks, l.answer, l.reason,
       to_timestamp(l.covered_by_ms / 1000.0) AS covered_by, to_timestamp(l.noted_ms / 1000.0) AS noted_at, l.revision, l.almanac, l.job_id
FROM ledger AS l JOIN jobs AS j ON j.job_id = l.job_id;
CREATE VIEW events_for_people AS
SELECT to_timestamp(e.at_ms / 1000.0) AS at, e.kind, e.count, j.tenant, j.name, e.node_id, e.actor, e.detail, e.event_id
FROM events AS e LEFT JOIN jobs AS j ON j.job_id = e.job_id;
