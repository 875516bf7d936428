-- How many runs each control holds back.
SELECT key, count(*) AS runs FROM queue WHERE gate = 'paused' GROUP BY key
