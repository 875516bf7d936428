-- One key, and what time it is for the fleet; the time also if there is no such key.
SELECT db_now_ms() AS now_ms, k.* FROM (SELECT 1 AS one) AS o LEFT JOIN access_keys AS k ON k.key_id = :key_id
