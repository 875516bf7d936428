-- The number of the newest run; 0 if there is none.
SELECT coalesce(max(run_id), 0) AS run_id FROM runs
