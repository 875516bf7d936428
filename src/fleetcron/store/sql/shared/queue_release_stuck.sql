-- The safety net: runs that wait for a key which nobody holds.
UPDATE queue SET gate = NULL, key = NULL, look_ms = NULL
WHERE run_id IN (
    SELECT q.run_id FROM queue AS q
    WHERE q.gate = 'key' AND q.since_ms <= :before_ms
        AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.claim_key = q.claim_key)
        AND NOT EXISTS (
            SELECT 1 FROM queue AS e
            WHERE e.claim_key = q.claim_key AND e.gate IS NULL AND e.scheduled_for_ms <= q.scheduled_for_ms)
    ORDER BY q.scheduled_for_ms, q.run_id
    LIMIT :most
)
RETURNING run_id
