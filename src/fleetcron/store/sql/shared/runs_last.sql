-- The newest run.
SELECT coalesce(max(run_id), 0) AS run_id FROM runs
