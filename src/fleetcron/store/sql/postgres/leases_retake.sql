-- Hold runs again that rested between two attempts. The job may have moved meanwhile: limits count them where they run.
UPDATE leases SET node_id = :node_id, batch = :batch, attempt = leases.attempt + 1, claimed_ms = :now_ms,
    due_ms = q.due_ms, pool = q.pool, type = q.type
FROM queue AS q
WHERE q.run_id = leases.run_id AND q.run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids
    AS jsonb)) AS v (value)) AND leases.node_id IS NULL
RETURNING leases.run_id
