-- Let runs that wait for one thing be looked at again: the next ones, in their order, as many as fit. Locked before they
-- are counted: a row that somebody else has deleted or let go meanwhile does not count, so a page that is not full is the
-- last one. What somebody else has locked is being looked at or ends; to wait for it could be a deadlock. If he is rolled
-- back, the sweep finds it. Materialised: as in queue_release.
WITH next AS MATERIALIZED (
    SELECT p.run_id FROM queue AS p
    WHERE p.gate = :gate AND p.key = :key AND (p.scheduled_for_ms, p.run_id) > (:after_ms, :after_id)
    ORDER BY p.scheduled_for_ms, p.run_id LIMIT :most FOR UPDATE SKIP LOCKED
)
UPDATE queue AS q SET gate = NULL, key = NULL, look_ms = NULL
FROM next
WHERE q.run_id = next.run_id
RETURNING q.run_id, q.scheduled_for_ms
