-- For runs of jobs that queue: the first run of the same job that is queued too, and comes before them.
SELECT n.run_id, e.run_id AS earlier
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, job_id UUID, claim_key TEXT, scheduled_for_ms BIGINT)
CROSS JOIN LATERAL (
    SELECT i.run_id FROM queue AS i
    WHERE i.claim_key = n.claim_key AND i.job_id = n.job_id
        AND (i.scheduled_for_ms, i.run_id) < (n.scheduled_for_ms, n.run_id)
    ORDER BY i.scheduled_for_ms, i.run_id LIMIT 1
) AS e
