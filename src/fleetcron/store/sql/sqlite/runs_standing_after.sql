-- Jobs of which a run stands that is later than their change: a worker has claimed it since the change was decided.
-- Not one that people have cancelled or replayed: it stands beside every change.
SELECT DISTINCT n.job_id
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'at_ms' AS at_ms
    FROM json_each(:rows)
) AS n
JOIN runs AS r ON r.job_id = n.job_id AND r.kind <> 'manual' AND r.kind = 'tick' AND r.scheduled_for_ms > n.at_ms
    AND r.state <> 'cancelled' AND r.round = 0
ORDER BY n.job_id
