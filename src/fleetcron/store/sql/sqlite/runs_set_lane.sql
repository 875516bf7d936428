-- Late ticks that are caught up.
UPDATE runs SET lane = 'catchup' WHERE run_id IN (SELECT value FROM json_each(:ids))
