-- Let queued runs say what their job says, and be looked at again. In another queue a run stands as far from the front as it
-- did: there it has neither credit nor debt.
UPDATE queue
SET pool = j.pool, priority = j.priority, type = j.type, handler = j.handler, overlap = j.overlap,
    max_running = j.max_running, depends = j.depends,
    claim_key = CASE WHEN queue.leased = 1 THEN queue.claim_key ELSE j.claim_key END,
    deadline_ms = CASE WHEN queue.kind = 'tick' AND queue.round = 0 THEN queue.scheduled_for_ms + j.start_deadline_ms END,
    rank = CASE WHEN queue.pool = j.pool AND queue.priority = j.priority THEN queue.rank ELSE max(0, queue.rank
        - coalesce((SELECT v.rank FROM shares AS v WHERE v.pool = queue.pool AND v.lane = queue.lane
            AND v.priority = queue.priority AND v.tenant = ''), 0)
        + coalesce((SELECT v.rank FROM shares AS v WHERE v.pool = j.pool AND v.lane = queue.lane
            AND v.priority = j.priority AND v.tenant = ''), 0)) END,
    gate = NULL, key = NULL, look_ms = NULL
FROM jobs AS j
WHERE j.job_id = queue.job_id AND queue.run_id IN (SELECT value FROM json_each(:ids))
    AND queue.pool IN (SELECT value FROM json_each(:pools))
RETURNING run_id, pool, lane, priority, tenant, rank
