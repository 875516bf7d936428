-- How many bytes are kept of what each attempt of a run printed.
SELECT attempt, sum(octet_length(text)) AS bytes FROM attempt_logs WHERE run_id = :run_id GROUP BY attempt
