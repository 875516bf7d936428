-- The regions that planned jobs have. It jumps from one to the next along the index: DISTINCT would read a row per job.
WITH RECURSIVE found (region) AS (
    SELECT min(region) FROM cursors WHERE next_due_ms IS NOT NULL
    UNION ALL
    SELECT (SELECT min(c.region) FROM cursors AS c WHERE c.next_due_ms IS NOT NULL AND c.region > found.region)
    FROM found
    WHERE found.region IS NOT NULL
)
SELECT region FROM found WHERE region IS NOT NULL ORDER BY region
