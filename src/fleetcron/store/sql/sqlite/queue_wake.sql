-- Let parked runs of a pool be looked at whose time has come: the first ones, as many as one claim should touch.
UPDATE queue SET gate = NULL, key = NULL, look_ms = NULL
WHERE run_id IN (
    SELECT p.run_id FROM queue AS p WHERE p.pool = :pool AND p.look_ms <= :now_ms
    ORDER BY p.look_ms, p.run_id LIMIT :most)
RETURNING run_id
