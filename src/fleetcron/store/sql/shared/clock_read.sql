-- What time it is, as exactly as the database knows.
SELECT db_now_us() AS now_us
