-- Release a control, and forget those whose time is over.
DELETE FROM controls WHERE (scope = :scope AND name = :name) OR until_ms <= :now_ms
