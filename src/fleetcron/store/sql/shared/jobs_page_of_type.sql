-- A page of the names of the jobs of a type, by filter.
SELECT j.tenant, j.name
FROM jobs AS j
WHERE j.deleted_ms IS NULL
    AND j.type = :type
    AND (j.tenant, j.name) > (:after_tenant, :after_name)
    AND j.tenant <= :last_tenant
    AND (CAST(:name AS TEXT) IS NULL OR j.name = :name)
    AND (CAST(:state AS TEXT) IS NULL OR j.state = :state)
    AND (CAST(:pool AS TEXT) IS NULL OR j.pool = :pool)
    AND (CAST(:managed_by AS TEXT) IS NULL OR j.managed_by = :managed_by)
    AND j.name LIKE :pattern ESCAPE '!'
ORDER BY j.tenant, j.name
LIMIT :most
