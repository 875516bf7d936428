-- Runs of a stretch of the queue, or of some jobs in it, whose row does not say what their job says. Of those jobs also
-- who waits for an upstream job, which may be another one now. A run that rests between two attempts keeps its key.
SELECT q.run_id, q.pool, q.leased, q.claim_key
FROM queue AS q
JOIN jobs AS j ON j.job_id = q.job_id
WHERE q.run_id > :after_id AND q.run_id <= :until_id AND (CAST(:jobs AS TEXT) IS NULL OR q.job_id IN (
    SELECT CAST(value AS UUID) FROM jsonb_array_elements_text(CAST(CAST(:jobs AS TEXT) AS jsonb)) AS v (value))) AND (
    q.pool <> j.pool OR q.priority <> j.priority OR q.type <> j.type OR q.handler <> j.handler
    OR q.overlap <> j.overlap OR q.max_running <> j.max_running OR q.depends <> j.depends
    OR (q.leased = 0 AND q.claim_key IS DISTINCT FROM j.claim_key)
    OR q.deadline_ms IS DISTINCT FROM CASE WHEN q.kind = 'tick' AND q.round = 0 THEN q.scheduled_for_ms + j.start_deadline_ms END
    OR (q.gate = 'upstream' AND CAST(:jobs AS TEXT) IS NOT NULL))
ORDER BY q.run_id
LIMIT :most
