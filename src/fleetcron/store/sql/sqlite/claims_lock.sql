-- One claim at a time in a pool, and none while the caps of tenants change. (SQLite has one writer anyway.)
SELECT :pool AS pool
