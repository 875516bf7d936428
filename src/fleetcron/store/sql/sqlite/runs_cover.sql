-- A run stands for others too.
UPDATE runs SET covers = runs.covers + n.covers,
    window_from_ms = CASE WHEN runs.window_from_ms IS NULL OR n.from_ms < runs.window_from_ms THEN n.from_ms
                          ELSE runs.window_from_ms END,
    window_to_ms = coalesce(runs.window_to_ms, runs.scheduled_for_ms)
FROM (
    SELECT c.covered_by AS run_id, sum(c.covers) AS covers, min(coalesce(c.window_from_ms,
        c.scheduled_for_ms)) AS from_ms
    FROM runs AS c WHERE c.run_id IN (SELECT value FROM json_each(:ids)) AND c.covered_by IS NOT NULL GROUP BY
        c.covered_by
) AS n
WHERE runs.run_id = n.run_id
