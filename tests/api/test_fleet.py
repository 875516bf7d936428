"""The fleet over HTTP: S1-39; tenants, pools, holds, nodes, shards, calendars and keys."""

from typing import Any

import pytest

from fleetcron.model.access import Role
from fleetcron.model.control import Wish
from fleetcron.store.nodes import Node
from tests.api.server import Api
from tests.api.test_jobs import JOB, MINUTELY
from tests.api.test_runs import worked
from tests.store.floor import ok


def test_the_figures_of_a_day(both: Api) -> None:
    """S1-39: succeeded, failed, dead, running, average duration."""
    both.post("/jobs", {**MINUTELY, "overlap": "allow"}, 201)
    worked(both, "succeed", "die", "run")
    found = both.get("/overview")
    assert [found[each] for each in ("succeeded", "failed", "dead", "dead_letters")] == [1, 1, 1, 1]
    assert found["running"] == len(both.get("/runs", state="running")["runs"]) > 0
    assert found["average_duration_ms"] is not None
    assert found["jobs"] == {"open": 1, "ended": 0}
    both.do(both.floor.clock.advance(49 * 3_600_000))
    assert (both.get("/overview")["succeeded"], both.get("/overview")["dead_letters"]) == (0, 1)


def test_tenants_and_pools(both: Api) -> None:
    both.post("/jobs", {**JOB, "tenant": "acme", "pool": "reports"}, 201)
    done = both.patch("/tenants/acme", {"weight": 3, "rate": "10/s"})
    assert (done["done"], done["after"]["rate"]) == ("changed", "10/s")
    assert both.patch("/tenants/acme", {"weight": 3})["done"] == "unchanged"
    refused = both.ask("PATCH", "/tenants/acme", {"weight": 0, "wieght": 1})
    assert (refused.status, sorted(refused.places)) == (422, ["/weight", "/wieght"])
    assert [each["name"] for each in both.get("/tenants")["tenants"]] == ["acme"]
    assert (both.get("/tenants/acme")["weight"], both.get("/tenants/acme")["jobs"]) == (3, 1)
    assert both.delete("/tenants/acme/limits")["after"] is None
    assert both.patch("/pools/reports", {"slots": 2, "per_type": {"true": 1}})["after"]["slots"] == 2
    [pool] = both.get("/pools")["pools"]
    assert (pool["name"], pool["slots"], pool["workers"]) == ("reports", 2, 0)
    assert both.delete("/pools/reports/limits")["done"] == "changed"
    own = both.acting(both.key("bob", Role.ADMIN, "acme"))
    assert [each["name"] for each in own.get("/tenants")["tenants"]] == ["acme"]
    own.patch("/tenants/acme", {"weight": 1000}, 404)  # nobody raises his own limits
    for path in ("/pools", "/nodes", "/shards"):
        own.get(path, 404)


def test_holds(both: Api) -> None:
    both.post("/jobs", {**JOB, "tenant": "acme", "pool": "reports"}, 201)
    ask = {"scope": "tenant", "name": "acme", "percent": 0, "reason": "incident", "for": "2h"}
    assert both.post("/holds", ask)["after"]["percent"] == 0
    both.post("/holds", {"scope": "pool", "name": "reports", "percent": 50, "reason": "slow"})
    own = both.acting(both.key("bob", Role.OPERATOR, "acme"))
    assert {each["scope"] for each in both.get("/holds")["holds"]} == {"tenant", "pool"}
    [mine] = own.get("/holds")["holds"]
    assert (mine["name"], mine["by"], mine["until"]) == ("acme", "key:ann", "2027-01-15T10:00:00Z")
    assert "did you mean acme?" in both.post("/holds", {**ask, "name": "acmee"}, 404)["detail"]
    own.delete("/holds/pool/reports", 404)
    assert both.delete("/holds/tenant/acme", reason="over")["after"] is None
    assert both.ask("POST", "/holds", {**ask, "for": "soon"}).places == ["/for"]
    assert both.ask("POST", "/holds", {"scope": "tenant", "name": "acme", "reason": "x"}).status == 422


ABOVE: list[dict[str, Any]] = [{"percent": 0}, {"percent": 50}, {"attempts": 1}, {"backoff": 4.0}]


@pytest.mark.parametrize("wish", ABOVE)
def test_a_tenant_does_not_undo_what_was_switched_from_above(both: Api, wish: dict[str, Any]) -> None:
    """Not by a step, not by a release, and not by making it stricter first, which would make it its own."""
    both.post("/jobs", {**JOB, "tenant": "acme"}, 201)
    acme = {"scope": "tenant", "name": "acme", "reason": "flood"}
    both.post("/holds", {**acme, **wish})
    before = both.get("/holds")
    for role in (Role.OPERATOR, Role.ADMIN):
        own = both.acting(both.key(f"bob-{role}", role, "acme"))
        for change in (
            {"percent": 100},
            {"percent": 0},
            {"attempts": 9},
            {"backoff": 1.0},
            {"percent": 0, "for": "1s"},
        ):
            told = own.post("/holds", {**acme, **change}, 403)["detail"]
        own.post("/holds", {**acme, "percent": 100, "keeps_end": True}, 403)
        assert "by key:ann (flood), and this key is of one tenant: ask them to let it go on" in told
        assert own.delete("/holds/tenant/acme", 403)["detail"] == told
    assert both.get("/holds") == before
    assert both.acting(both.key("eve", Role.OPERATOR)).delete("/holds/tenant/acme")["after"] is None
    assert own.post("/holds", {**acme, "percent": 0})["after"]["percent"] == 0  # nothing is in force from above


@pytest.mark.parametrize("actor", ["root", "nobody (no key)", "key:acme", "key:acme-2/bob"])
def test_whoever_is_no_key_of_the_tenant_is_above_it(api: Api, actor: str) -> None:
    """The command line on the database says who is logged in; a key of all tenants may be called like the tenant."""
    api.post("/jobs", {**JOB, "tenant": "acme"}, 201)
    own = api.acting(api.key("bob", Role.OPERATOR, "acme"))
    ok(api.do(api.store.controls.switch(Wish("tenant", "acme", 0, reason="flood"), actor=actor)))
    assert f"by {actor} (flood)" in own.delete("/holds/tenant/acme", 403)["detail"]


def test_a_tenant_holds_itself_and_undoes_it(both: Api) -> None:
    """Any key of the tenant. What an admin of all tenants changes then is from above, all of it."""
    both.post("/jobs", {**JOB, "tenant": "acme"}, 201)
    acme = {"scope": "tenant", "name": "acme", "reason": "ours"}
    bob, eve = (both.acting(both.key(name, Role.OPERATOR, "acme")) for name in ("bob", "eve"))
    assert bob.post("/holds", {**acme, "percent": 0})["after"]["by"] == "key:acme/bob"
    assert eve.post("/holds", {**acme, "percent": 50})["after"]["percent"] == 50
    assert bob.delete("/holds/tenant/acme")["after"] is None
    bob.post("/holds", {**acme, "percent": 0})
    assert both.post("/holds", {**acme, "percent": 0})["after"]["by"] == "key:ann"  # the same, and from above now
    bob.delete("/holds/tenant/acme", 403)
    both.delete("/holds/tenant/acme")
    bob.post("/holds", {**acme, "percent": 0})
    assert both.post("/holds", {**acme, "attempts": 1})["after"]["by"] == "key:ann"
    bob.delete("/holds/tenant/acme", 403)
    assert both.delete("/holds/tenant/acme")["after"] is None
    both.post("/holds", {**acme, "percent": 0, "for": "1h"})
    both.do(both.floor.clock.advance(3_600_000))
    assert bob.post("/holds", {**acme, "percent": 50})["after"]["by"] == "key:acme/bob"  # the one from above is over


def test_nodes_and_shards(both: Api) -> None:
    found = both.get("/shards")
    assert (found["shards"], [(each["shard"], each["node_id"]) for each in found["leases"]]) == (
        4,
        [(number, "node") for number in range(4)],
    )
    both.do(both.store.nodes.announce(Node("node", "here", 1, ("api",)), 15_000, shards=4))
    [node] = both.get("/nodes")["nodes"]
    assert (node["node_id"], node["alive"], node["roles"]) == ("node", True, ["api"])


def test_calendars(both: Api) -> None:
    both.post("/jobs", {**JOB, "calendars": ["holidays"]}, 409)
    made = both.put("/calendars/holidays", {"holidays": ["2027-01-16"]})
    assert (made["done"], made["jobs_moved"]) == ("changed", 0)
    assert both.put("/calendars/holidays", {"holidays": ["2027-01-16"]})["done"] == "unchanged"
    job = both.post("/jobs", {**JOB, "calendars": ["holidays"]}, 201)
    assert job["next"][0]["scheduled_for"] == "2027-01-17T07:00:00Z"
    assert both.put("/calendars/holidays", {"holidays": ["2027-01-17"]})["jobs_moved"] == 1
    assert both.get("/jobs/report")["next"][0]["scheduled_for"] == "2027-01-16T07:00:00Z"
    assert both.get("/calendars/holidays")["holidays"] == ["2027-01-17"]
    assert [each["name"] for each in both.get("/calendars")["calendars"]] == ["holidays"]
    both.get("/calendars/nothing", 404)
    assert sorted(both.ask("PUT", "/calendars/x", {"holidays": ["soon"], "day": 1}).places) == ["/day", "/holidays/0"]


def test_keys_are_made_listed_and_revoked(both: Api) -> None:
    made = both.post("/keys", {"name": "ci", "role": "operator", "tenant": "acme", "expires_in": "90d"}, 201)
    assert both.get("/me", key=made["key"])["tenant"] == "acme"
    listed = both.get("/keys")["keys"]
    assert [each["name"] for each in listed] == ["ann", "ci"]
    assert made["key"] not in str(listed)
    assert both.post("/keys", {"name": "ci", "role": "viewer", "tenant": "acme"}, 409)["code"] == "refused"
    twice = both.ask("POST", "/keys", {"name": "x", "role": "viewer"}, headers={"Idempotency-Key": "k"})
    assert twice.status == 422  # its answer is kept nowhere
    bad = both.ask("POST", "/keys", {"name": "A b", "role": "worker", "expires_in": "90d"})
    assert sorted(bad.places) == ["/name", "/pools"]
    boss = both.acting(both.key("boss", Role.ADMIN, "acme"))
    boss.post("/keys", {"name": "x", "role": "viewer", "tenant": "shop"}, 404)
    boss.post("/keys", {"name": "w", "role": "worker", "pools": ["*"]}, 403)
    assert boss.post("/keys", {"name": "x", "role": "admin"}, 201)["tenant"] == "acme"
    for_all = {"name": "all", "role": "viewer", "tenant": None}  # what is refused must not become another one silently
    assert "leave tenant out" in boss.post("/keys", for_all, 403)["detail"]
    assert both.post("/keys", for_all, 201)["tenant"] is None
    assert {each["tenant"] for each in boss.get("/keys")["keys"]} == {"acme"}
    boss.post(f"/keys/{listed[0]['key_id']}/revoke", {"reason": "x"}, 404)
    assert boss.post(f"/keys/{made['key_id']}/revoke", {"reason": "leaked"})["done"] == "revoked"
    assert both.post(f"/keys/{made['key_id']}/revoke", {"reason": "leaked"})["done"] == "unchanged"
    both.get("/me", 401, key=made["key"])
    both.post("/keys/nothing/revoke", {"reason": "x"}, 404)
