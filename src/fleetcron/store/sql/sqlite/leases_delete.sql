-- Give keys and places back.
DELETE FROM leases WHERE run_id IN (SELECT value FROM json_each(:ids))
