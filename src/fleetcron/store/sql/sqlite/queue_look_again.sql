-- Let runs that wait for one thing be looked at again: the next ones, in their order, as many as fit.
UPDATE queue SET gate = NULL, key = NULL, look_ms = NULL
WHERE gate = :gate AND run_id IN (
    SELECT p.run_id FROM queue AS p
    WHERE p.gate = :gate AND p.key = :key AND (p.scheduled_for_ms, p.run_id) > (:after_ms, :after_id)
    ORDER BY p.scheduled_for_ms, p.run_id LIMIT :most)
RETURNING run_id, scheduled_for_ms
