-- No two runs of a job that must not overlap are held at once, whatever key each was claimed with. The key of a lease is
-- that of its job when it was claimed: after an edit of pool and concurrency key two claims meet neither at a lock nor at
-- a key, and neither sees what the other has not committed.

CREATE UNIQUE INDEX leases_one_of_job ON leases (job_id) WHERE claim_key IS NOT NULL AND overlap <> 'allow';
