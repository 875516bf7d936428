-- Let one migrator work at a time: BEGIN IMMEDIATE has done so already.
SELECT 1
