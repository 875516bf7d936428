-- What is known of these runs and their jobs, to say what can be done about them.
SELECT r.run_id, r.job_id, r.state, r.finished_ms, r.discarded_ms, r.reason, r.round, j.tenant, j.name, j.state AS job_state,
    j.deleted_ms, j.shadow_ms
FROM runs AS r
JOIN jobs AS j ON j.job_id = r.job_id
WHERE r.run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS
    v (value))
ORDER BY r.run_id
