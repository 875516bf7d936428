-- Let the gaps of jobs follow them to another home region.
UPDATE gaps
SET region = n.region
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'region' AS region
    FROM json_each(:rows)
) AS n
WHERE gaps.job_id = n.job_id
