-- Let these runs be looked at again, if they still wait there. What somebody else has locked is being looked at.
WITH these AS MATERIALIZED (
    SELECT p.run_id FROM queue AS p
    WHERE p.gate = :gate AND p.run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS
        jsonb)) AS v (value))
    ORDER BY p.run_id FOR UPDATE SKIP LOCKED
)
UPDATE queue AS q SET gate = NULL, key = NULL, look_ms = NULL
FROM these
WHERE q.run_id = these.run_id
RETURNING q.run_id
