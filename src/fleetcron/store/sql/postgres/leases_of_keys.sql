-- Who holds these keys, and what these jobs hold under keys that are not their own. Locked: whoever parks behind a lease
-- must know that its end will see them. (NO KEY: a handler that guards its writes may keep its lease for seconds, and all
-- claims of the pool would wait for it.)
SELECT l.claim_key, l.slot, l.run_id, l.attempt, l.job_id, l.kind, l.lane, l.round, l.node_id, l.due_ms,
    l.scheduled_for_ms, l.cancel
FROM leases AS l
WHERE l.run_id IN (
    SELECT k.run_id FROM leases AS k
    WHERE k.claim_key IN (SELECT value FROM jsonb_array_elements_text(CAST(:keys AS jsonb)) AS v (value))
    UNION ALL
    SELECT o.run_id FROM leases AS o
    WHERE substr(coalesce(o.claim_key, ''), 1, 2) <> 'j:'
        AND o.job_id IN (SELECT CAST(value AS UUID) FROM jsonb_array_elements_text(CAST(:jobs AS jsonb)) AS v (value)))
ORDER BY l.run_id
FOR NO KEY UPDATE OF l
