from redis import Redis


def test_it_keeps_a_value(redis_server: str) -> None:
    with Redis.from_url(redis_server) as client:
        client.set("lease", "node-1")
        assert client.get("lease") == b"node-1"
        server = client.info("server")
        assert int(server["redis_version"].partition(".")[0]) >= 7
        assert "valkey_version" not in server
