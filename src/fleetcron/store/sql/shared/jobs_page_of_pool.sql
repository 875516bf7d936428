-- A page of the names of the jobs of a pool, by filter.
SELECT j.tenant, j.name
FROM jobs AS j
WHERE j.deleted_ms IS NULL
    AND j.pool = :pool
    AND (j.tenant, j.name) > (:after_tenant, :after_name)
    AND j.tenant <= :last_tenant
    AND (CAST(:name AS TEXT) IS NULL OR j.name = :name)
    AND (CAST(:state AS TEXT) IS NULL OR j.state = :state)
    AND (CAST(:type AS TEXT) IS NULL OR j.type = :type)
    AND (CAST(:managed_by AS TEXT) IS NULL OR j.managed_by = :managed_by)
    AND j.name LIKE :pattern ESCAPE '!'
ORDER BY j.tenant, j.name
LIMIT :most
