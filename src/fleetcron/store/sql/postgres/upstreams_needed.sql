-- Jobs that depend on a job, and can still run.
SELECT j.name FROM jobs AS j
WHERE j.tenant = :tenant AND j.depends = 1 AND j.deleted_ms IS NULL AND j.state <> 'cancelled'
    AND j.definition -> 'depends_on' @> to_jsonb(CAST(:name AS TEXT))
ORDER BY j.name
LIMIT :most
