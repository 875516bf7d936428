-- Jobs by name, and all jobs upstream of them, with what each depends on. UNION ends the walk, also in a cycle.
WITH RECURSIVE reached (tenant, name) AS (
    SELECT value ->> 'tenant', value ->> 'name' FROM json_each(:rows)
    UNION
    SELECT j.tenant, u.value
    FROM reached AS r
    CROSS JOIN jobs AS j ON j.tenant = r.tenant AND j.name = r.name AND j.deleted_ms IS NULL
    CROSS JOIN json_each(j.definition, '$.depends_on') AS u
    WHERE j.depends = 1 AND j.state <> 'cancelled'
)
SELECT j.tenant, j.name, CASE WHEN j.state = 'cancelled' THEN '[]' ELSE j.definition -> 'depends_on' END AS depends_on
FROM reached AS r
CROSS JOIN jobs AS j ON j.tenant = r.tenant AND j.name = r.name AND j.deleted_ms IS NULL
ORDER BY j.tenant, j.name
