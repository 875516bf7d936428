-- Hold runs for the first time; they leave the queue. The unique key decides: only the returned ones are held.
INSERT INTO leases (run_id, attempt, node_id, batch, job_id, tenant, pool, type, lane, kind, due_ms, scheduled_for_ms,
    deadline_ms, overlap, claim_key, slot, claimed_ms, failures, losses, round)
SELECT q.run_id, q.attempt + 1, :node_id, :batch, q.job_id, q.tenant, q.pool, q.type, q.lane, q.kind, q.due_ms,
    q.scheduled_for_ms, q.deadline_ms, q.overlap, q.claim_key, n.slot, :now_ms, q.failures, q.losses, q.round
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'slot' AS slot FROM json_each(:rows)) AS n
JOIN queue AS q ON q.run_id = n.run_id
WHERE q.leased = 0
ORDER BY q.claim_key, n.slot, q.run_id
ON CONFLICT DO NOTHING;
DELETE FROM queue
WHERE run_id IN (SELECT value ->> 'run_id' FROM json_each(:rows)) AND leased = 0
    AND EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = queue.run_id AND l.node_id = :node_id AND l.batch = :batch)
RETURNING run_id
