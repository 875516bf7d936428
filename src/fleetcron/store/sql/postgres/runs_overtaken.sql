-- Whether a run of these timings stands that is later than the instant to which their jobs were rewound: somebody has
-- queued it since that was decided. Not one that people have cancelled or replayed: it stands beside every change.
SELECT r.run_id
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (timing_id BIGINT)
JOIN cursors AS c ON c.timing_id = n.timing_id AND c.cursor_ms = :at_ms
JOIN runs AS r ON r.job_id = c.job_id AND r.kind <> 'manual' AND r.kind = 'tick' AND r.scheduled_for_ms > :at_ms
    AND r.state <> 'cancelled' AND r.round = 0
LIMIT 1
