-- End a session.
DELETE FROM access_sessions WHERE digest = :digest RETURNING key_id
