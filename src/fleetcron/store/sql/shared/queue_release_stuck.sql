-- The safety net: runs that wait for a key which nobody holds. Whoever stands in line behind an earlier run of its own
-- job, which waits for something else (a handler, an upstream job, a limit), is not stuck. Nor is whoever was told when to
-- look, or was called (queue_call) and is not looked at: its pool has no worker.
UPDATE queue SET gate = NULL, key = NULL, look_ms = NULL
WHERE run_id IN (
    SELECT q.run_id FROM queue AS q
    WHERE q.gate = 'key' AND q.since_ms <= :before_ms
        AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.claim_key = q.claim_key)
        AND NOT EXISTS (
            SELECT 1 FROM queue AS e
            WHERE e.claim_key = q.claim_key AND e.scheduled_for_ms <= q.scheduled_for_ms
                AND (e.gate IS NULL OR (e.gate = 'key' AND e.look_ms IS NOT NULL)
                    OR (q.overlap = 'queue' AND e.job_id = q.job_id AND e.gate <> 'key')))
    ORDER BY q.scheduled_for_ms, q.run_id
    LIMIT :most
)
RETURNING run_id
