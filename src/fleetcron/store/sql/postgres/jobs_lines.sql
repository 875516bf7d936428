-- Jobs by name, with their next instants and their last run, planned or asked for, in the state that people see.
SELECT
    j.*,
    c.next_due_ms,
    (SELECT min(n.scheduled_for_ms) FROM runs AS n
     WHERE n.job_id = j.job_id AND n.kind <> 'manual' AND n.scheduled_for_ms > db_now_ms() AND n.state = 'planned')
        AS next_planned_ms,
    r.scheduled_for_ms AS last_scheduled_ms, r.run_id AS last_run_id, r.started_ms AS last_started_ms,
    r.finished_ms AS last_finished_ms, r.reason AS last_reason,
    CASE WHEN r.finished_ms IS NOT NULL THEN r.state
         WHEN h.node_id IS NOT NULL AND h.due_ms <= db_now_ms() THEN 'running'
         WHEN h.run_id IS NOT NULL AND (h.node_id IS NULL OR h.attempt > 1) THEN 'retrying'
         WHEN q.gate IS NOT NULL THEN 'waiting'
         ELSE r.state END AS last_state
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (tenant TEXT, name TEXT)
JOIN jobs AS j ON j.tenant = n.tenant AND j.name = n.name AND j.deleted_ms IS NULL
LEFT JOIN cursors AS c ON c.job_id = j.job_id
LEFT JOIN runs AS r ON r.run_id = (
    SELECT l.run_id FROM (
        SELECT * FROM (SELECT t.scheduled_for_ms, t.run_id FROM runs AS t
            WHERE t.job_id = j.job_id AND t.kind <> 'manual' AND t.scheduled_for_ms <= db_now_ms()
            ORDER BY t.scheduled_for_ms DESC LIMIT 1) AS tick
        UNION ALL
        SELECT * FROM (SELECT m.scheduled_for_ms, m.run_id FROM runs AS m
            WHERE m.job_id = j.job_id AND m.kind = 'manual' AND m.scheduled_for_ms <= db_now_ms()
            ORDER BY m.scheduled_for_ms DESC, m.run_id DESC LIMIT 1) AS asked
    ) AS l ORDER BY l.scheduled_for_ms DESC, l.run_id DESC LIMIT 1)
LEFT JOIN leases AS h ON h.run_id = r.run_id
LEFT JOIN queue AS q ON q.run_id = r.run_id
ORDER BY j.tenant, j.name
