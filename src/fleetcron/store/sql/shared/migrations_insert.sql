-- Note that a migration was applied.
INSERT INTO migrations (number, name, checksum, at_ms, program)
VALUES (:number, :name, :checksum, db_now_ms(), :program)
