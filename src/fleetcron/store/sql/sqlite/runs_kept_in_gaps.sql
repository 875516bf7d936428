-- The ticks in some gaps that have their run already: people cancelled it ahead of its time, and then the job was changed.
SELECT n.gap_id, r.scheduled_for_ms
FROM (
    SELECT value ->> 'gap_id' AS gap_id, value ->> 'job_id' AS job_id, value ->> 'from_ms' AS from_ms,
        value ->> 'to_ms' AS to_ms
    FROM json_each(:rows)
) AS n
JOIN runs AS r ON r.job_id = n.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms > n.from_ms
    AND r.scheduled_for_ms <= n.to_ms AND (r.state = 'cancelled' OR r.round > 0)
ORDER BY n.gap_id, r.scheduled_for_ms
