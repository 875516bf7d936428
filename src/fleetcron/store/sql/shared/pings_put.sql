-- Keep a ping of a job, or what is new about one that is known. No row: there is no such job.
INSERT INTO pings (job_id, ping_id, at_ms, noted_ms, started_ms, finished_ms, exit_code, host)
SELECT j.job_id, CAST(:ping_id AS TEXT), CAST(:at_ms AS BIGINT), CAST(:noted_ms AS BIGINT), CAST(:started_ms AS BIGINT),
    CAST(:finished_ms AS BIGINT), CAST(:exit_code AS INTEGER), CAST(:host AS TEXT)
FROM jobs AS j
WHERE j.tenant = :tenant AND j.name = :name AND j.deleted_ms IS NULL
ON CONFLICT (job_id, ping_id) DO UPDATE SET
    at_ms = coalesce(pings.started_ms, excluded.started_ms, pings.at_ms),
    started_ms = coalesce(pings.started_ms, excluded.started_ms),
    finished_ms = coalesce(pings.finished_ms, excluded.finished_ms),
    exit_code = coalesce(pings.exit_code, excluded.exit_code)
RETURNING job_id, ping_id, at_ms, started_ms, finished_ms, exit_code, host
