-- Runs that are claimed or closed leave the queue.
DELETE FROM queue WHERE run_id IN (SELECT value FROM json_each(:ids)) RETURNING run_id, job_id, claim_key
