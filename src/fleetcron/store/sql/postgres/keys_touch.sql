-- Remember that keys were used, unless that is known well enough, or somebody else writes it just now.
UPDATE access_keys SET last_used_ms = db_now_ms()
WHERE key_id IN (
    SELECT k.key_id FROM access_keys AS k
    WHERE k.key_id IN (SELECT value FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS v (value))
        AND coalesce(k.last_used_ms, 0) <= db_now_ms() - :every_ms
    FOR UPDATE SKIP LOCKED)
RETURNING key_id
