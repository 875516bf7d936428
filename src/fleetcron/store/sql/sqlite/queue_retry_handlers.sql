-- A worker has come: runs of its pools that wait for a handler are looked at again.
UPDATE queue SET gate = NULL, key = NULL, look_ms = NULL WHERE gate = 'handler' AND pool IN (SELECT value FROM json_each(:pools))
