-- In which pools these runs are queued.
SELECT run_id, pool FROM queue WHERE run_id IN (SELECT value FROM json_each(:ids))
ORDER BY run_id
