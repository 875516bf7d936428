-- Keep who changed a job, when, and from what to what.
INSERT INTO job_revisions (job_id, revision, at_ms, actor, action, timing_id, before, after)
SELECT job_id, revision, at_ms, actor, action, timing_id, before, after
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'revision' AS revision, value ->> 'at_ms' AS at_ms, value ->>
        'actor' AS actor, value ->> 'action' AS action, value ->> 'timing_id' AS timing_id, value ->> 'before' AS
        before, value ->> 'after' AS after
    FROM json_each(:rows)
) AS n
WHERE true
ON CONFLICT DO NOTHING
