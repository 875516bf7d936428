-- Take ticks off their way that were never started, unless somebody is at them; only the returned ones were on it.
DELETE FROM upcoming WHERE (run_after_ms, run_id) IN (SELECT r.run_after_ms, r.run_id FROM runs AS r WHERE r.run_id IN (SELECT value FROM json_each(:ids)))
RETURNING run_id
