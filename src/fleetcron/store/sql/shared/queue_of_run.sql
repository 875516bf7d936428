-- The place of a run in the queue.
SELECT * FROM queue WHERE run_id = :run_id
