-- One change of a tenant's dependencies at a time, until the end of the transaction. (SQLite has one writer anyway.)
SELECT :tenant AS tenant
