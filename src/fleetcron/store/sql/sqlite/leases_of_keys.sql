-- Who holds these keys, and what these jobs hold under keys that are not their own. Locked: whoever parks behind a lease
-- must know that its end will see them.
SELECT l.claim_key, l.slot, l.run_id, l.attempt, l.job_id, l.kind, l.lane, l.round, l.node_id, l.due_ms,
    l.scheduled_for_ms, l.cancel
FROM leases AS l
WHERE l.run_id IN (
    SELECT k.run_id FROM leases AS k
    WHERE k.claim_key IN (SELECT value FROM json_each(:keys))
    UNION ALL
    SELECT o.run_id FROM leases AS o
    WHERE substr(coalesce(o.claim_key, ''), 1, 2) <> 'j:'
        AND o.job_id IN (SELECT value FROM json_each(:jobs)))
ORDER BY l.run_id
