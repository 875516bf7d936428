-- Forget pings that are too old to count, some of them, and wait for nobody.
DELETE FROM pings WHERE (job_id, ping_id) IN (
    SELECT job_id, ping_id FROM pings WHERE noted_ms <= db_now_ms() - :kept_ms ORDER BY noted_ms LIMIT :most
    FOR UPDATE SKIP LOCKED)
RETURNING ping_id
