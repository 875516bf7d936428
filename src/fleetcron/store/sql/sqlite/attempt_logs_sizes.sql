-- How many bytes are kept of what each attempt of a run printed.
SELECT attempt, sum(length(CAST(text AS BLOB))) AS bytes FROM attempt_logs WHERE run_id = :run_id GROUP BY attempt
