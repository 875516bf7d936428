-- Jobs by name, and all jobs upstream of them, with what each depends on. UNION ends the walk, also in a cycle.
WITH RECURSIVE reached (tenant, name) AS (
    SELECT n.tenant, n.name FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (tenant TEXT, name TEXT)
    UNION
    SELECT j.tenant, u.name
    FROM reached AS r
    JOIN jobs AS j ON j.tenant = r.tenant AND j.name = r.name AND j.deleted_ms IS NULL
    CROSS JOIN LATERAL jsonb_array_elements_text(j.definition -> 'depends_on') AS u (name)
    WHERE j.depends = 1 AND j.state <> 'cancelled'
)
SELECT j.tenant, j.name,
    CASE WHEN j.state = 'cancelled' THEN '[]' ELSE CAST(j.definition -> 'depends_on' AS TEXT) END AS depends_on
FROM reached AS r
JOIN jobs AS j ON j.tenant = r.tenant AND j.name = r.name AND j.deleted_ms IS NULL
ORDER BY j.tenant, j.name
