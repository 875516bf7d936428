-- Take dead letters from their list; only the returned ones were on it.
UPDATE runs SET discarded_ms = :now_ms, discarded_why = :reason
WHERE run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS
    v (value))
    AND state = 'dead' AND discarded_ms IS NULL
RETURNING run_id, job_id
