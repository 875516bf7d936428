-- One claim at a time in a pool, until the end of the transaction. (SQLite has one writer anyway.)
SELECT :name AS name
