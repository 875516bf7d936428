-- Which attempts of a node were asked to stop.
SELECT run_id, attempt, cancel FROM leases WHERE node_id = :node_id AND cancel IS NOT NULL ORDER BY run_id
