-- Jobs that depend on a job, and can still run.
SELECT j.name FROM jobs AS j
WHERE j.tenant = :tenant AND j.depends = 1 AND j.deleted_ms IS NULL AND j.state <> 'cancelled'
    AND EXISTS (SELECT 1 FROM json_each(j.definition, '$.depends_on') AS u WHERE u.value = :name)
ORDER BY j.name
LIMIT :most
