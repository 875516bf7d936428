"""Other names for the same: a job by its id, and the table of the docs, whose every row leads to a route."""

import re
from pathlib import Path
from typing import Any

from fleetcron.model.access import Role
from tests.api.server import V1, Api
from tests.api.test_jobs import MINUTELY
from tests.api.test_walk import routes

PAGE = Path(__file__).parents[2] / "docs/learn/api.md"
OWED = [f"S0-{number}" for number in range(57, 63)]
OWED += [f"S1-{number}" for number in range(34, 40)] + [f"S4-{number}" for number in range(23, 28)]


def test_a_job_is_found_by_its_id_on_every_route(both: Api) -> None:
    """S0-59, S1-35: walked from the document."""
    job_id = both.post("/jobs", {**MINUTELY, "tenant": "acme"}, 201)["job_id"]
    own = both.acting(both.key("bob", Role.OPERATOR, "acme", rate=600_000))
    named = [(method, path) for method, path, _ in routes(both) if path.startswith("/jobs/{name}")]
    assert len(named) > 14
    queries: dict[str, dict[str, Any]] = {"diff": {"from_": 1}, "why": {"at": "2027-01-15T08:01:00Z"}}
    queries |= {"stats": {"from_": "2027-01-15T00:00:00Z", "to": "2027-01-16T00:00:00Z"}}
    for method, path in named:
        query = queries.get(path.rpartition("/")[2], {})
        if method == "GET":
            answers = [own.get(path.format(name=name), **query) for name in ("tick", f"id:{job_id}")]
            assert answers[0] == answers[1], path
        body = {"from": "2027-01-15T07:59:00Z"} if path.endswith("backfill") else {} if method == "PATCH" else None
        for name in ("id:", "id:x", "id:" + job_id[:-1] + "x", f"id:{job_id.upper()}"):
            got = own.ask(method, path.format(name=name), body or ({} if method == "PUT" else None), **query)
            assert got.status == 404, (method, path, name, got.body)
    by_id = f"/jobs/id:{job_id}"
    both.get(by_id, 404)  # of another tenant than the one that is asked for
    assert both.get(by_id, tenant="acme")["name"] == "tick"
    assert own.post(f"{by_id}/pause")["done"] == "paused"
    assert own.post(f"{by_id}/resume")["done"] == "resumed"
    assert own.post(f"{by_id}/trigger", status=202)["job_id"] == job_id
    assert own.post(f"{by_id}/backfill", {"from": "2027-01-15T07:58:00Z"})["created"] == 3
    match = {"If-Match": "*"}
    assert own.put(by_id, {**MINUTELY, "pool": "a"}, headers=match)["definition"]["pool"] == "a"
    assert own.patch(by_id, {"pool": "b"}, headers=match)["definition"]["pool"] == "b"
    looks_alike = own.post("/jobs", {**MINUTELY, "name": job_id}, 201)  # a name that is another's id is a name
    assert own.get(f"/jobs/{job_id}")["job_id"] == looks_alike["job_id"] != job_id
    assert own.delete(by_id, headers=match)["done"] == "deleted"
    assert own.post("/jobs", MINUTELY, 201)["job_id"] != job_id
    own.get(by_id, 404)  # the name is somebody else's now


def test_every_row_of_the_table_leads_to_a_route_that_is_there(api: Api) -> None:
    rows = re.findall(
        r"^\| (S\d-.*?) \| (.*) \|$", PAGE.read_text("utf-8").partition("## Other names")[2], re.MULTILINE
    )
    assert sorted(item for there, _ in rows for item in re.findall(r"S\d-\d+", there)) == sorted(OWED)
    paths = api.get("//openapi.json")["paths"]
    for there, here in rows:
        found = re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^ ?`]+)(\?[^ `]+)?", here)
        assert found, there
        for method, path, query in found:
            operation = paths[V1 + path][method.lower()]
            known = {each["name"] for each in operation.get("parameters", ())}
            assert set(re.findall(r"[?&](\w+)=", query)) <= known, (there, query)
