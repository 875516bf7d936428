-- Jobs that another scheduler still runs, and what it says about its own starts.

-- Ticks before this instant are the old scheduler's; NULL: the job never was in shadow. As in the definition.
ALTER TABLE jobs ADD COLUMN shadow_ms INTEGER;
CREATE INDEX jobs_in_shadow ON jobs (tenant, name) WHERE shadow_ms IS NOT NULL AND deleted_ms IS NULL;

-- One row for each time that the old scheduler ran a job. Times are of this database's clock.
CREATE TABLE pings (
    job_id      TEXT NOT NULL,
    ping_id     TEXT NOT NULL,             -- of whoever pings: the start and the end of a command are one ping
    at_ms       INTEGER NOT NULL,          -- its start, or its end if nobody said when it started
    noted_ms    INTEGER NOT NULL,          -- when it was first heard of
    started_ms  INTEGER,
    finished_ms INTEGER,
    exit_code   INTEGER,
    host        TEXT NOT NULL,
    PRIMARY KEY (job_id, ping_id)
) STRICT;
CREATE INDEX pings_by_time ON pings (job_id, at_ms, ping_id);
CREATE INDEX pings_by_age ON pings (noted_ms);
