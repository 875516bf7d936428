-- For runs of jobs that queue: the first run of the same job that is queued too, and comes before them.
SELECT n.run_id, e.run_id AS earlier
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'job_id' AS job_id, value ->> 'claim_key' AS claim_key,
    value ->> 'scheduled_for_ms' AS scheduled_for_ms FROM json_each(:rows)) AS n
JOIN queue AS e ON e.run_id = (
    SELECT i.run_id FROM queue AS i
    WHERE i.claim_key = n.claim_key AND i.job_id = n.job_id
        AND (i.scheduled_for_ms < n.scheduled_for_ms OR (i.scheduled_for_ms = n.scheduled_for_ms AND i.run_id <
            n.run_id))
    ORDER BY i.scheduled_for_ms, i.run_id LIMIT 1)
