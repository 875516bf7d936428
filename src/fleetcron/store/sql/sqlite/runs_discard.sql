-- Take dead letters from their list; only the returned ones were on it.
UPDATE runs SET discarded_ms = :now_ms, discarded_why = :reason
WHERE run_id IN (SELECT value FROM json_each(:ids))
    AND state = 'dead' AND discarded_ms IS NULL
RETURNING run_id, job_id
