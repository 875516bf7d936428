-- The ticks of jobs that collapse or cancel which are queued and were never started, in their order. Locked: they may be
-- closed, and after an edit some are in another pool, whose claims do not wait for this one. Whoever is being held there
-- is passed over; the key that he comes to hold decides.
SELECT q.job_id, q.run_id, q.lane, q.scheduled_for_ms, q.due_ms, q.deadline_ms
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, claim_key TEXT)
JOIN queue AS q ON q.claim_key = n.claim_key AND q.job_id = n.job_id
WHERE q.kind = 'tick' AND q.attempt = 0 AND q.round = 0 AND q.leased = 0
ORDER BY q.job_id, q.scheduled_for_ms, q.run_id
FOR UPDATE OF q SKIP LOCKED
