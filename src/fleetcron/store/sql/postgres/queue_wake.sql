-- Let parked runs of a pool be looked at whose time has come: the first ones, as many as one claim should touch. A hold
-- that ends has given all its runs the same instant: to put them in an order of their own would be to sort them all for
-- every page. What somebody else has locked is being looked at or ends, and if not, the next claim finds it.
-- Materialised: as in queue_release.
WITH first AS MATERIALIZED (
    SELECT p.run_id FROM queue AS p WHERE p.pool = :pool AND p.look_ms <= :now_ms
    ORDER BY p.look_ms LIMIT :most FOR UPDATE SKIP LOCKED
)
UPDATE queue AS q SET gate = NULL, key = NULL, look_ms = NULL
FROM first
WHERE q.run_id = first.run_id
RETURNING q.run_id
