from redis import Redis


def test_it_keeps_a_value(valkey_server: str) -> None:
    with Redis.from_url(valkey_server) as client:
        client.set("lease", "node-1")
        assert client.get("lease") == b"node-1"
        assert client.info("server")["server_name"] == "valkey"
