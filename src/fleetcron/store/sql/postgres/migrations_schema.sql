-- Make the schema if it is missing. (CREATE … IF NOT EXISTS would want the right to create it even when it is there.)
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = current_setting('search_path')) THEN
        EXECUTE format('CREATE SCHEMA %I', current_setting('search_path'));
    END IF;
END
$$
