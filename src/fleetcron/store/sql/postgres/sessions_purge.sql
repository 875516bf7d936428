-- Forget sessions that have ended, some of them, and wait for nobody.
DELETE FROM access_sessions WHERE digest IN (
    SELECT digest FROM access_sessions WHERE expires_ms <= db_now_ms() ORDER BY expires_ms LIMIT :most
    FOR UPDATE SKIP LOCKED)
RETURNING digest
