-- A page of the names of jobs that have a text in them, from an index that has all it asks for.
SELECT j.tenant, j.name
FROM jobs AS j
WHERE j.deleted_ms IS NULL
    AND (j.tenant, j.name) > (:after_tenant, :after_name)
    AND j.tenant <= :last_tenant
    AND j.name LIKE :pattern ESCAPE '!'
ORDER BY j.tenant, j.name
LIMIT :most
