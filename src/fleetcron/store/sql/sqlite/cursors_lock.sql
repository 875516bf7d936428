-- The cursor of a job, which stays where it is until the end of the transaction.
SELECT job_id FROM cursors WHERE job_id = :job_id
