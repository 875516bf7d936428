-- Let the rate of a tenant begin anew: what it was is no measure of what it is.
DELETE FROM rates WHERE tenant = :tenant
