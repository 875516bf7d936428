-- The ticks of jobs that collapse or cancel which are queued and were never started, in their order.
SELECT q.job_id, q.run_id, q.lane, q.scheduled_for_ms, q.due_ms, q.deadline_ms
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'claim_key' AS claim_key FROM json_each(:rows)) AS n
JOIN queue AS q ON q.claim_key = n.claim_key AND q.job_id = n.job_id
WHERE q.kind = 'tick' AND q.attempt = 0 AND q.round = 0 AND q.leased = 0
ORDER BY q.job_id, q.scheduled_for_ms, q.run_id
