"""Every route × {no key, a key that was revoked, every lower role, another tenant}, walked from the document itself.

A route that is added is walked without a line here; one whose role is not in the document cannot be made at all.
"""

import re
from collections.abc import Iterator
from typing import Any

from fleetcron.api.routing import ROLE
from fleetcron.model.access import Role
from tests.api.server import V1, Api
from tests.api.test_jobs import MINUTELY
from tests.api.test_runs import worked
from tests.store.floor import ok

LOWER = {
    "viewer": [Role.WORKER, Role.PING],
    "operator": [Role.WORKER, Role.PING, Role.VIEWER],
    "admin": [Role.WORKER, Role.PING, Role.VIEWER, Role.OPERATOR],
    "worker": [Role.PING, Role.VIEWER, Role.OPERATOR, Role.ADMIN],
    "ping": [Role.WORKER, Role.VIEWER],
}


def routes(api: Api) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in api.get("//openapi.json")["paths"].items():
        for method, operation in operations.items():
            if path.startswith(V1):
                yield method.upper(), path.removeprefix(V1), operation


def filled(path: str, run_id: int, key_id: str) -> str:
    values = {"name": "tick", "run_id": run_id, "key_id": key_id, "scope": "tenant", "worker_id": "w~x~1"}
    return path.format(**values)


def test_every_route_says_which_role_it_takes(api: Api) -> None:
    found = list(routes(api))
    assert len(found) > 50
    for method, path, operation in found:
        assert operation[ROLE] in LOWER, (method, path)
        is_for_browsers = operation[ROLE] != "worker" and (method, path) != ("POST", "/session")
        assert operation["security"] == [{"key": []}, *([{"session": []}] if is_for_browsers else [])]
        assert "4XX" in operation["responses"]
        assert operation["summary"]
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", operation["operationId"]), operation["operationId"]
    names = [operation["operationId"] for _, _, operation in found]
    assert len(set(names)) == len(names)


def test_nobody_gets_in_without_a_key_or_with_a_lower_role(api: Api) -> None:
    revoked = api.key("gone")
    ok(api.do(api.store.keys.revoke(revoked.split("_")[1], "test", actor="test")))
    keys = {role: api.key(f"a-{role}", role, rate=600_000) for role in Role}
    for method, path, operation in routes(api):
        where = filled(path, 1, "x")
        for key in (None, revoked):
            got = api.acting(key).ask(method, where, headers={"If-Match": "*"})
            assert got.status == 401, (method, path, got.body)
        for role in LOWER[operation[ROLE]]:
            got = api.ask(method, where, raw=b"{", key=keys[role], headers={"Content-Type": "application/json"})
            assert got.status == 403, (method, path, role, got.body)  # before the body is looked at


def test_for_another_tenant_nothing_is_there(both: Api) -> None:
    """Everything that has a name or a number, or can be asked about a tenant, is asked for by an admin of another one:
    404, whatever it is; and nothing has changed afterwards."""
    both.post("/jobs", {**MINUTELY, "tenant": "acme", "overlap": "allow"}, 201)
    both.put("/calendars/tick", {"holidays": ["2027-01-16"]}, tenant="acme")
    [run] = worked(both, "die")
    other = both.acting(both.key("eve", Role.ADMIN, "shop", rate=600_000))
    [mine] = [each["key_id"] for each in both.get("/keys")["keys"] if each["name"] == "ann"]
    bodies = {
        "/holds": {"scope": "tenant", "name": "acme", "percent": 0, "reason": "x"},
        "/jobs": MINUTELY,
        "/jobs/preview": MINUTELY,
        "/jobs/batch": MINUTELY,
        "/dead/replay": {},
        "/jobs/{name}/backfill": {"from": "2027-01-15T07:00:00Z"},
        "/runs/{run_id}/discard": {"reason": "x"},
        "/keys/{key_id}/revoke": {"reason": "x"},
    }

    def told() -> list[Any]:
        about = {"tenant": "acme"}
        seen = [both.get(path, **about) for path in ("/jobs", "/runs", "/dead", "/events", "/ledger", "/calendars")]
        return [*seen, both.get("/jobs/tick", **about), both.get("/tenants"), both.get("/holds")]

    before = told()
    walked = 0
    for method, path, operation in routes(both):
        names = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
        is_about_one = "{" in path or (method, path) == ("POST", "/holds")
        if operation[ROLE] == "worker" or not (is_about_one or "tenant" in names):
            continue
        walked += 1
        body = bodies.get(path, {} if method in ("PUT", "PATCH") else None)
        query: dict[str, Any] = {}
        if "from" in names and "/diff" in path:
            query["from_"] = 1
        if "at" in names:
            query["at"] = "2027-01-15T08:01:00Z"
        mine_or_theirs = (None, "acme") if "tenant" in names else (None,)
        for asked in mine_or_theirs if is_about_one else ("acme",):
            if path == "/calendars/{name}" and method == "PUT" and asked is None:
                continue  # one of its own under the same name is its own affair
            where = filled(path, run.run_id, mine).replace("/tenants/tick", "/tenants/acme")
            headers = {"If-Match": "*"} | ({"Content-Type": "application/x-ndjson"} if path.endswith("/batch") else {})
            got = other.ask(method, where, body, headers=headers, tenant=asked, **query)
            if path.endswith("/batch"):  # it answers for each line
                assert [each["done"] for each in got.json["items"]] == ["refused"], got.body
                continue
            assert got.status == 404, (method, path, asked, got.status, got.body)
    assert walked > 35
    assert told() == before
