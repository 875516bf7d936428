-- Tenants that are not ahead of their queue have no share to remember.
DELETE FROM shares WHERE tenant <> '' AND rank <= (
    SELECT v.rank FROM shares AS v
    WHERE v.pool = shares.pool AND v.lane = shares.lane AND v.priority = shares.priority AND v.tenant = '')
