-- The next ids of jobs, deleted ones included: they may have gaps.
SELECT CAST(job_id AS TEXT) AS id FROM jobs WHERE job_id > :after ORDER BY job_id LIMIT :most
