-- What somebody has set for the jobs of these tenants.
SELECT tenant, max_jobs, max_payload FROM tenants
WHERE tenant IN (SELECT value FROM jsonb_array_elements_text(CAST(:tenants AS jsonb)) AS v (value))
