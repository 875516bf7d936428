-- When the next start of these tenants is allowed.
SELECT tenant, next_us FROM rates WHERE tenant IN (SELECT value FROM jsonb_array_elements_text(CAST(:tenants AS
    jsonb)) AS v (value))
