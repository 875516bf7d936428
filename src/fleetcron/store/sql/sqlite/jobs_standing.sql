-- Jobs by name, with where they stand, and the last ticks that no change can take back: claimed (also if whoever claimed it
-- was lost before its instant), answered, in a gap.
-- A run that people have cancelled, or cancelled and replayed, stands where it is, and no change has to wait for its tick.
SELECT j.*, c.shard, c.timing_id, c.cursor_ms, c.ticks_used, c.next_due_ms, t.body AS timing,
    (SELECT max(r.scheduled_for_ms) FROM runs AS r
     WHERE r.job_id = j.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms > db_now_ms()
         AND r.state <> 'cancelled' AND r.round = 0 AND NOT (
         r.lane = 'live' AND r.state = 'planned' AND r.attempt = 0 AND EXISTS (
             SELECT 1 FROM upcoming AS u WHERE u.run_after_ms = r.run_after_ms AND u.run_id = r.run_id))) AS claimed_ms,
    (SELECT l.to_ms FROM ledger AS l WHERE l.job_id = j.job_id ORDER BY l.from_ms DESC LIMIT 1) AS answered_ms,
    (SELECT max(g.to_ms) FROM gaps AS g WHERE g.job_id = j.job_id) AS gap_ms
FROM (
    SELECT value ->> 'tenant' AS tenant, value ->> 'name' AS name
    FROM json_each(:rows)
) AS n
JOIN jobs AS j ON j.tenant = n.tenant AND j.name = n.name AND j.deleted_ms IS NULL
LEFT JOIN cursors AS c ON c.job_id = j.job_id
LEFT JOIN timings AS t ON t.timing_id = c.timing_id
ORDER BY j.tenant, j.name
