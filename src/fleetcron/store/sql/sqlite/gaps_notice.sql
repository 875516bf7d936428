-- Let the gaps of jobs be decided that waited for their resume or end.
UPDATE gaps
SET noticed_ms = n.noticed_ms, policy = n.policy
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'policy' AS policy, value ->> 'noticed_ms' AS noticed_ms
    FROM json_each(:rows)
) AS n
WHERE gaps.job_id = n.job_id AND gaps.noticed_ms IS NULL
