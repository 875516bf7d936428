-- The content of timings, by id (a JSON list).
SELECT timing_id, body FROM timings WHERE timing_id IN (SELECT value FROM json_each(:ids))
