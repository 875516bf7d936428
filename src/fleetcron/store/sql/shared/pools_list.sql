-- What somebody has set for pools: of one, or of all.
SELECT pool, slots, per_tenant, per_type, updated_ms FROM pools
WHERE CAST(:pool AS TEXT) IS NULL OR pool = :pool
ORDER BY pool
