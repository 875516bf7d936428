-- Which of these names of a tenant are taken.
SELECT name FROM jobs
WHERE deleted_ms IS NULL AND tenant = :tenant
    AND name IN (SELECT value FROM jsonb_array_elements_text(CAST(:names AS jsonb)) AS v (value))
