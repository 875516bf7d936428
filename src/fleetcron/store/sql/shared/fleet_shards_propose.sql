-- Fix the number of shards of the fleet, if nobody has.
INSERT INTO fleet (key, value) VALUES ('shards', :shards) ON CONFLICT (key) DO NOTHING
