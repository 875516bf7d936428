-- Remember a claim, so that asking again gives the same.
UPDATE workers SET batch = :batch WHERE node_id = :node_id
