-- The payload of a run that was given one of its own.
SELECT payload FROM runs WHERE run_id = :run_id AND payload IS NOT NULL
