-- The first run from a number on, and when it was created.
SELECT run_id, created_ms FROM runs WHERE run_id >= :run_id ORDER BY run_id LIMIT 1
