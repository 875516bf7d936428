-- Take lines out of the ledger; only the returned ones were in it.
DELETE FROM ledger WHERE entry_id IN (SELECT value FROM json_each(:ids))
RETURNING entry_id
