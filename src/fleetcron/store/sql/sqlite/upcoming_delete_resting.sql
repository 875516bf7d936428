-- Runs that rest between two attempts are not on their way any more.
DELETE FROM upcoming WHERE (run_after_ms, run_id) IN (
    SELECT l.due_ms, l.run_id FROM leases AS l
    WHERE l.run_id IN (SELECT value FROM json_each(:ids)) AND l.node_id IS NULL)
