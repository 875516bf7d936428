-- Which attempt of a run has ended last, which one runs, and whether the run is over.
SELECT r.finished_ms,
    (SELECT max(a.attempt) FROM attempts AS a WHERE a.run_id = r.run_id) AS ended,
    (SELECT l.attempt FROM leases AS l
     WHERE l.run_id = r.run_id AND l.node_id IS NOT NULL AND l.due_ms <= :now_ms) AS running
FROM runs AS r
WHERE r.run_id = :run_id
