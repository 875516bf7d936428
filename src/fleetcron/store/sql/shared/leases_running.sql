-- The attempt of a run that runs now.
SELECT attempt, node_id, CASE WHEN claimed_ms > due_ms THEN claimed_ms ELSE due_ms END AS started_ms, progress, note,
    cancel
FROM leases WHERE run_id = :run_id AND node_id IS NOT NULL AND due_ms <= :now_ms
