-- Hold runs for the first time; they leave the queue. The unique keys decide: only the returned ones are held. In the
-- order of the keys and slots, so that claims of two pools do not wait for each other. Locked before: a claim of another
-- pool may be closing one, and a lease would be left of a run that has ended.
WITH mine AS MATERIALIZED (
    SELECT q.*, n.slot
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, slot INTEGER)
    JOIN queue AS q ON q.run_id = n.run_id
    WHERE q.leased = 0
    FOR UPDATE OF q SKIP LOCKED
), held AS (
    INSERT INTO leases (run_id, attempt, node_id, batch, job_id, tenant, pool, type, lane, kind, due_ms, scheduled_for_ms,
        deadline_ms, overlap, claim_key, slot, claimed_ms, failures, losses, round)
    SELECT q.run_id, q.attempt + 1, :node_id, :batch, q.job_id, q.tenant, q.pool, q.type, q.lane, q.kind, q.due_ms,
        q.scheduled_for_ms, q.deadline_ms, q.overlap, q.claim_key, q.slot, :now_ms, q.failures, q.losses, q.round
    FROM mine AS q
    ORDER BY q.claim_key, q.slot, q.run_id
    ON CONFLICT DO NOTHING
    RETURNING run_id
)
DELETE FROM queue AS q USING held AS h WHERE q.run_id = h.run_id
RETURNING q.run_id
