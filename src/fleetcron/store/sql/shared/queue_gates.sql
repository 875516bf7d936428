-- At which gates somebody waits.
WITH RECURSIVE gates (gate) AS (
    SELECT q.gate FROM queue AS q WHERE q.run_id = (
        SELECT p.run_id FROM queue AS p WHERE p.gate IS NOT NULL
        ORDER BY p.gate, p.key, p.scheduled_for_ms, p.run_id LIMIT 1)
    UNION ALL
    SELECT q.gate FROM gates AS g JOIN queue AS q ON q.run_id = (
        SELECT p.run_id FROM queue AS p WHERE p.gate > g.gate AND p.gate IS NOT NULL
        ORDER BY p.gate, p.key, p.scheduled_for_ms, p.run_id LIMIT 1)
)
SELECT gate FROM gates
