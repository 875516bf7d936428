-- Take the limits of a pool away.
DELETE FROM pools WHERE pool = :pool
