-- A worker that is about to end serves no pool any more.
UPDATE workers SET pools = '{}' WHERE node_id = :node_id
