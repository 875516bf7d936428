-- A run stands for others too. The period of a tick begins at the tick before it, whatever became of that.
UPDATE runs SET covers = runs.covers + n.covers,
    window_from_ms = CASE WHEN runs.window_from_ms IS NULL OR n.from_ms < runs.window_from_ms THEN n.from_ms
                          ELSE runs.window_from_ms END,
    window_to_ms = coalesce(runs.window_to_ms, runs.scheduled_for_ms)
FROM (
    SELECT e.covered_by AS run_id, sum(e.covers) AS covers,
        min(coalesce(e.window_from_ms, greatest(e.ran_ms, e.answered_ms),
            e.scheduled_for_ms)) AS from_ms
    FROM (
        SELECT c.covered_by, c.covers, c.window_from_ms, c.scheduled_for_ms,
            (SELECT r.scheduled_for_ms FROM runs AS r
             WHERE r.job_id = c.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms < c.scheduled_for_ms
             ORDER BY r.scheduled_for_ms DESC LIMIT 1) AS ran_ms,
            (SELECT CASE WHEN l.to_ms < c.scheduled_for_ms THEN l.to_ms ELSE l.from_ms END FROM ledger AS l
             WHERE l.job_id = c.job_id AND l.from_ms < c.scheduled_for_ms
             ORDER BY l.from_ms DESC LIMIT 1) AS answered_ms
        FROM runs AS c
        WHERE c.run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb))
            AS v (value)) AND c.covered_by IS NOT NULL
    ) AS e
    GROUP BY e.covered_by
) AS n
WHERE runs.run_id = n.run_id
