-- The ticks in some gaps that have their run already: people cancelled it ahead of its time, and then the job was changed.
-- One look into the index for each gap, never one at all runs (OFFSET 0).
SELECT n.gap_id, k.scheduled_for_ms
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (gap_id BIGINT, job_id UUID, from_ms BIGINT, to_ms BIGINT)
CROSS JOIN LATERAL (
    SELECT r.scheduled_for_ms FROM runs AS r
    WHERE r.job_id = n.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms > n.from_ms
        AND r.scheduled_for_ms <= n.to_ms AND (r.state = 'cancelled' OR r.round > 0)
    OFFSET 0
) AS k
ORDER BY n.gap_id, k.scheduled_for_ms
