-- Is there a table of migrations?
SELECT 1 FROM pg_tables WHERE schemaname = current_setting('search_path') AND tablename = 'migrations'
