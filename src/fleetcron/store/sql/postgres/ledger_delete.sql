-- Take lines out of the ledger; only the returned ones were in it.
DELETE FROM ledger WHERE entry_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS
    v (value))
RETURNING entry_id
