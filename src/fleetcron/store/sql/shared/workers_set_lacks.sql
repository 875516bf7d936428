-- Say which handlers a worker was asked for and has not.
UPDATE workers SET lacks = :lacks WHERE node_id = :node_id
