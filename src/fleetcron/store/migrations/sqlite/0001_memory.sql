-- Jobs, ticks, runs, the ledger, and who plans them.
-- Tables by temperature: jobs is wide and rarely written, cursors narrow and written at every tick; runs is written at
-- creation and once at the end. Time is milliseconds UTC. No foreign keys on the hot tables: rows of jobs are never
-- removed (a deleted job keeps its history), and a check per run would cost as much as the run.

-- db_now_ms() and db_now_us() are functions of the connection: the engine binds them to its clock.

CREATE TABLE fleet (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE jobs (
    job_id     TEXT PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    type       TEXT NOT NULL,
    pool       TEXT NOT NULL,
    region     TEXT NOT NULL,              -- home region, or *
    state      TEXT NOT NULL,
    on_resume  TEXT,                       -- what a paused job does about the paused window
    problem    TEXT,                       -- why an active job has no ticks
    revision   INTEGER NOT NULL,
    definition TEXT NOT NULL,
    managed_by TEXT,
    created_by TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    deleted_ms INTEGER
) STRICT;
CREATE UNIQUE INDEX jobs_by_name ON jobs (tenant, name) WHERE deleted_ms IS NULL;
CREATE INDEX jobs_by_type ON jobs (type, tenant, name) WHERE deleted_ms IS NULL;
CREATE INDEX jobs_by_state ON jobs (state, tenant, name) WHERE deleted_ms IS NULL;

CREATE TABLE job_revisions (
    job_id     TEXT NOT NULL,
    revision   INTEGER NOT NULL,
    at_ms      INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    action     TEXT NOT NULL,
    timing_id  INTEGER NOT NULL,
    before     TEXT,
    after      TEXT,
    PRIMARY KEY (job_id, revision)
) STRICT;

-- Everything that decides the ticks of a job, by content: a million jobs share a few rows.
CREATE TABLE timings (
    timing_id INTEGER PRIMARY KEY,
    body      TEXT NOT NULL
) STRICT;
-- Which zones and calendars a timing asks.
CREATE TABLE timing_parts (
    kind      TEXT NOT NULL,
    tenant    TEXT NOT NULL,
    name      TEXT NOT NULL,
    timing_id INTEGER NOT NULL,
    PRIMARY KEY (kind, tenant, name, timing_id)
) STRICT;

-- Zone tables and calendars, by name and epoch. What a run or ledger row was computed with is its epoch.
CREATE TABLE almanac_epoch (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL
) STRICT;
INSERT INTO almanac_epoch (one, epoch) VALUES (1, 1);
CREATE TABLE almanac (
    kind     TEXT NOT NULL,
    tenant   TEXT NOT NULL,                -- '' for zones
    name     TEXT NOT NULL,
    epoch    INTEGER NOT NULL,              -- valid from this epoch on, until a row with a higher one
    hash     TEXT NOT NULL,
    release  TEXT NOT NULL,
    noted_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, tenant, name, epoch)
) STRICT;
CREATE TABLE almanac_bodies (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE cursors (
    job_id      TEXT PRIMARY KEY,
    region      TEXT NOT NULL,
    shard       INTEGER NOT NULL,
    state       TEXT NOT NULL,             -- of the job
    timing_id   INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    cursor_ms   INTEGER NOT NULL,           -- every tick up to here is decided, or belongs to a gap
    ticks_used  INTEGER NOT NULL,           -- towards max_ticks; 0 without
    next_due_ms INTEGER                     -- when the scheduler has to look again; NULL: never
) STRICT;
CREATE INDEX cursors_due ON cursors (region, shard, next_due_ms) WHERE next_due_ms IS NOT NULL;

CREATE TABLE runs (
    run_id           INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id           TEXT NOT NULL,
    scheduled_for_ms INTEGER NOT NULL,
    run_after_ms     INTEGER NOT NULL,
    created_ms       INTEGER NOT NULL,
    finished_ms      INTEGER,
    window_from_ms   INTEGER,
    window_to_ms     INTEGER,
    almanac          INTEGER NOT NULL,
    covers           INTEGER NOT NULL,
    revision         INTEGER NOT NULL,
    kind             TEXT NOT NULL,
    lane             TEXT NOT NULL,
    state            TEXT NOT NULL
) STRICT;
-- The promise: one run per tick. A manual run never takes the identity of a tick.
CREATE UNIQUE INDEX runs_one_per_tick ON runs (job_id, scheduled_for_ms) WHERE kind <> 'manual';

-- Planned runs on their way: by the instant at which they may start.
CREATE TABLE upcoming (
    run_after_ms INTEGER NOT NULL,
    run_id       INTEGER NOT NULL,
    job_id       TEXT NOT NULL,
    lane         TEXT NOT NULL,
    PRIMARY KEY (run_after_ms, run_id)
) STRICT;

-- How much catch-up is on its way.
CREATE INDEX upcoming_catchup ON upcoming (run_id) WHERE lane = 'catchup';

CREATE TABLE ledger (
    entry_id      INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id        TEXT NOT NULL,
    from_ms       INTEGER NOT NULL,         -- the first and the last tick, both included
    to_ms         INTEGER NOT NULL,
    ticks         INTEGER NOT NULL,
    answer        TEXT NOT NULL,
    reason        TEXT NOT NULL,
    covered_by_ms INTEGER,                  -- the tick whose run stands for these
    revision      INTEGER NOT NULL,
    almanac       INTEGER NOT NULL,
    noted_ms      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX ledger_by_tick ON ledger (job_id, from_ms);

CREATE TABLE gaps (
    gap_id     INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id     TEXT NOT NULL,
    region     TEXT NOT NULL,
    shard      INTEGER NOT NULL,
    from_ms    INTEGER NOT NULL,            -- the ticks in (from, to]
    to_ms      INTEGER NOT NULL,
    cause      TEXT NOT NULL,
    policy     TEXT,                       -- NULL: the misfire policy of the timing
    revision   INTEGER NOT NULL,
    timing_id  INTEGER NOT NULL,
    almanac    INTEGER NOT NULL,
    noticed_ms INTEGER,                     -- when it was to be decided; NULL: not yet (a paused job was edited)
    trimmed    INTEGER NOT NULL            -- 1: what the window and the limit drop is in the ledger already
) STRICT;
CREATE INDEX gaps_open ON gaps (region, shard, gap_id) WHERE noticed_ms IS NOT NULL;
CREATE INDEX gaps_by_job ON gaps (job_id, from_ms);

CREATE TABLE nodes (
    node_id         TEXT PRIMARY KEY,
    host            TEXT NOT NULL,
    pid             INTEGER NOT NULL,
    roles           TEXT NOT NULL,
    region          TEXT NOT NULL,
    version         TEXT NOT NULL,
    zone_release    TEXT NOT NULL,
    started_ms      INTEGER NOT NULL,
    seen_ms         INTEGER NOT NULL,
    expires_ms      INTEGER NOT NULL,
    clock_offset_ms INTEGER NOT NULL
) STRICT;
-- The term lives apart from the lease: only a take-over updates it, so that checking it does not wait for heartbeats.
CREATE TABLE shard_terms (
    region TEXT NOT NULL,
    shard  INTEGER NOT NULL,
    term   INTEGER NOT NULL,
    PRIMARY KEY (region, shard)
) STRICT;
CREATE TABLE shard_leases (
    region     TEXT NOT NULL,
    shard      INTEGER NOT NULL,
    node_id    TEXT NOT NULL,
    term       INTEGER NOT NULL,
    taken_ms   INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (region, shard)
) STRICT;

CREATE TABLE events (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms    INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    count    INTEGER NOT NULL,
    job_id   TEXT,
    node_id  TEXT,
    actor    TEXT,
    detail   TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_kind ON events (kind, at_ms);
CREATE INDEX events_by_job ON events (job_id, at_ms) WHERE job_id IS NOT NULL;

-- For people: the same with instants that can be read. Programs use the tables.
CREATE VIEW jobs_for_people AS
SELECT j.tenant, j.name, j.state, strftime('%Y-%m-%dT%H:%M:%SZ', c.next_due_ms / 1000, 'unixepoch') AS looked_at_next, strftime('%Y-%m-%dT%H:%M:%SZ', c.cursor_ms / 1000, 'unixepoch') AS decided_until, j.type, j.pool, j.region, j.revision,
       j.problem, j.created_by, strftime('%Y-%m-%dT%H:%M:%SZ', j.created_ms / 1000, 'unixepoch') AS created_at, strftime('%Y-%m-%dT%H:%M:%SZ', j.updated_ms / 1000, 'unixepoch') AS updated_at, j.job_id
FROM jobs AS j LEFT JOIN cursors AS c ON c.job_id = j.job_id
WHERE j.deleted_ms IS NULL;
CREATE VIEW runs_for_people AS
SELECT j.tenant, j.name, strftime('%Y-%m-%dT%H:%M:%SZ', r.scheduled_for_ms / 1000, 'unixepoch') AS scheduled_for, strftime('%Y-%m-%dT%H:%M:%SZ', r.run_after_ms / 1000, 'unixepoch') AS run_after, r.state, r.kind, r.lane, r.covers,
       strftime('%Y-%m-%dT%H:%M:%SZ', r.created_ms / 1000, 'unixepoch') AS created_at, strftime('%Y-%m-%dT%H:%M:%SZ', r.finished_ms / 1000, 'unixepoch') AS finished_at, r.revision, r.almanac, r.run_id, r.job_id
FROM runs AS r JOIN jobs AS j ON j.job_id = r.job_id;
CREATE VIEW ledger_for_people AS
SELECT j.tenant, j.name, strftime('%Y-%m-%dT%H:%M:%SZ', l.from_ms / 1000, 'unixepoch') AS first_tick, strftime('%Y-%m-%dT%H:%M:%SZ', l.to_ms / 1000, 'unixepoch') AS last_tick, l.ticks, l.answer, l.reason,
       strftime('%Y-%m-%dT%H:%M:%SZ', l.covered_by_ms / 1000, 'unixepoch') AS covered_by, strftime('%Y-%m-%dT%H:%M:%SZ', l.noted_ms / 1000, 'unixepoch') AS noted_at, l.revision, l.almanac, l.job_id
FROM ledger AS l JOIN jobs AS j ON j.job_id = l.job_id;
CREATE VIEW events_for_people AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', e.at_ms / 1000, 'unixepoch') AS at, e.kind, e.count, j.tenant, j.name, e.node_id, e.actor, e.detail, e.event_id
FROM events AS e LEFT JOIN jobs AS j ON j.job_id = e.job_id;
