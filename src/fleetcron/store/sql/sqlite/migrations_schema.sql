-- Make the schema if it is missing: a SQLite file has none.
SELECT 1
