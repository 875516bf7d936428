-- Runs that are claimed or closed leave the queue.
DELETE FROM queue WHERE run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS
    v (value)) RETURNING run_id, job_id, claim_key
