-- Which run each was merged into, and that one in turn. UNION ends the walk, also in a circle.
WITH RECURSIVE way (run_id) AS (
    SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS v (value)
    UNION
    SELECT r.covered_by FROM way AS w JOIN runs AS r ON r.run_id = w.run_id WHERE r.covered_by IS NOT NULL
)
SELECT r.run_id, r.covered_by FROM way AS w JOIN runs AS r ON r.run_id = w.run_id WHERE r.covered_by IS NOT NULL
