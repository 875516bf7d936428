-- Let the gaps of jobs be decided that waited for their resume; with the end of a job all that are left are cancelled.
UPDATE gaps
SET noticed_ms = n.noticed_ms, policy = n.policy, cause = coalesce(n.cause, gaps.cause)
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'policy' AS policy, value ->> 'cause' AS cause, value ->> 'noticed_ms' AS noticed_ms
    FROM json_each(:rows)
) AS n
WHERE gaps.job_id = n.job_id AND (gaps.noticed_ms IS NULL OR n.policy = 'cancel')
