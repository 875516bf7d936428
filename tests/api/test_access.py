"""Who is let in: keys, roles, rates, and a first try without a key on this machine alone."""

import re

import pytest

from fleetcron.errors import RefusedError
from fleetcron.model.access import Role, new_key
from tests.api.server import Api, serving
from tests.cli.folder import Folder
from tests.store.floor import ok


def test_without_any_key_this_machine_is_let_in_until_there_is_one(bare: Api) -> None:
    first = bare.ask("GET", "/me")
    assert (first.status, first.json["role"], first.json["open_access"]) == (200, "admin", True)
    assert "no API key exists" in first.headers["fleetcron-open-access"]
    key = bare.key("ann", Role.VIEWER)
    assert bare.get("/me", 401)["code"] == "unauthenticated"
    mine = bare.ask("GET", "/me", key=key)
    assert (mine.json["name"], mine.json["open_access"]) == ("ann", False)
    assert "fleetcron-open-access" not in mine.headers
    found = bare.do(bare.store.keys.find(key.split("_")[1]))
    assert found.key is not None
    ok(bare.do(bare.store.keys.revoke(found.key.credential.key_id, "test", actor="test")))
    assert bare.ask("GET", "/me").status == 401  # a key that is revoked is one that was there


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8470"},
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_no_page_of_another_site_may_use_a_first_try(bare: Api, headers: dict[str, str]) -> None:
    assert bare.get("/me", 403, headers=headers)["code"] == "forbidden"
    own = bare.url.partition("://")[2]
    assert bare.get("/me", headers={"Origin": bare.url, "Host": own, "Sec-Fetch-Site": "same-origin"})


def test_nobody_comes_through_a_proxy_without_a_key(bare: Api) -> None:
    """It asks from this machine, for whoever is beyond it."""
    ways = {"Forwarded": "for=203.0.113.9", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "localhost",
            "X-Real-IP": "203.0.113.9", "Via": "1.1 proxy"}  # fmt: skip
    for name, value in ways.items():
        refused = bare.get("/me", 403, headers={name: value})
        assert f"({name})" in refused["detail"], name
        assert "fleetcron keys create" in refused["detail"]
    key = bare.key("ann")
    assert bare.get("/me", key=key, headers=ways)["name"] == "ann"


def test_an_address_that_others_can_reach_needs_a_key() -> None:
    with pytest.raises(RefusedError, match="there is no key yet"), serving(":memory:", listen="0.0.0.0:0"):
        pass


def test_keys_that_are_refused(api: Api) -> None:
    unknown = new_key().text
    for header in ("", "Bearer", "Bearer x", f"Basic {unknown}", f"Bearer {unknown[:-1]}x", f"Bearer {unknown}"):
        refused = api.ask("GET", "/me", headers={"Authorization": header})
        assert refused.status == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert unknown not in refused.body.decode()
    soon = api.key("soon", lasts_ms=1_000)
    assert api.get("/me", key=soon)["name"] == "soon"
    api.do(api.floor.clock.advance(1_000))
    assert "has expired" in api.get("/me", 401, key=soon)["detail"]


def test_a_key_that_asks_too_often_waits_and_the_others_do_not(api: Api) -> None:
    often = api.key("often", Role.VIEWER, rate=60)  # ten at once
    answers = [api.ask("GET", "/me", key=often) for _ in range(12)]
    assert [each.status for each in answers[:10]] == [200] * 10
    assert answers[11].status == 429
    assert int(answers[11].headers["retry-after"]) >= 1
    assert api.get("/me")["name"] == "ann"


def test_a_worker_is_no_viewer(api: Api) -> None:
    worker = api.key("host", Role.WORKER, pools=("reports",))
    assert "role viewer" in api.get("/me", 403, key=worker)["detail"]


def test_that_a_key_was_used_is_written_down() -> None:
    with serving(":memory:") as api:
        key = api.key("ann")
        api.get("/me", key=key)
        used = api.context.uses.take()
        assert used == [key.split("_")[1]]
        ok(api.do(api.store.keys.touch(used)))
        found = api.do(api.store.keys.find(used[0])).key
        assert found is not None
        assert found.credential.last_used_ms == api.floor.now


def test_serve_has_the_api_and_ends_with_it(quick: Folder) -> None:
    roles = {"FLEETCRON_NODE__ROLES": ""}
    with quick.serving("--listen", "0", **roles) as node:
        address = re.search(r"http://(127\.0\.0\.1:\d+)/api", node.until("The API is at"))
        assert address
        second = quick("serve", "--listen", address[1], "--no-wait", code=2, **roles)
        assert "choose another address with --listen" in second.stderr
        assert "listens on" in node.stop()
    refused = quick("api", "--listen", "0.0.0.0:0", code=2, **roles)
    assert "there is no key yet" in refused.stderr
    quick("keys", "create", "ann", "--role", "admin")
    with quick.serving("--listen", "0.0.0.0:0", command="api", **roles) as node:
        node.until("It answers requests")
        node.stop()
    with quick.serving("--no-api", **roles) as node:
        node.until("Look at it")
        assert "The API is at" not in node.stop()
