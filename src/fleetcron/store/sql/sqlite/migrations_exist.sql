-- Is there a table of migrations?
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'
