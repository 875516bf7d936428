"""Jobs of files over HTTP: whole or not at all where a document is wrong, and nobody reaches another tenant."""

import json
from typing import Any

from fleetcron.model.access import Role
from tests.api.server import Api

LOAD: dict[str, Any] = {"name": "load", "schedule": {"cron": "0 2 * * *"}, "run": {"command": ["true"]}}
REPORT: dict[str, Any] = {**LOAD, "name": "report", "depends_on": ["load"], "calendars": [{"name": "days"}]}
DAYS: dict[str, Any] = {"name": "days", "holidays": ["2027-12-24"]}


def names(api: Api, **query: Any) -> list[str]:
    return [f"{job['tenant']}/{job['name']}" for job in api.get("/jobs", **query)["jobs"]]


def test_documents_are_rehearsed_planned_and_applied(both: Api) -> None:
    body = {"calendars": [DAYS], "jobs": [REPORT, LOAD], "managed_by": "shop", "prune": "pause"}
    assert both.post("/apply", {**body, "dry_run": True})["counts"]["created"] == 2
    plan = both.post("/plan", {**body, "days": 10})
    assert [(job["change"], job["ticks"]["appear"]) for job in plan["jobs"]] == [("+", 10), ("+", 10)]
    assert names(both) == []
    made = both.post("/apply", body)
    assert [(job["name"], job["done"]) for job in made["jobs"]] == [("report", "created"), ("load", "created")]
    assert made["calendars"][0]["done"] == "created"
    assert both.get("/jobs/load")["created_by"].startswith("shop (key:ann")
    assert both.post("/plan", body)["jobs"] == []
    fewer = {**body, "jobs": [{**LOAD, "schedule": {"cron": "0 3 * * *"}}]}
    assert [(job["name"], job["change"]) for job in both.post("/plan", fewer)["jobs"]] == [
        ("load", "~"),
        ("report", "-"),
    ]
    assert both.post("/apply", fewer)["counts"]["paused"] == 1
    assert both.get("/jobs/report")["state"] == "paused"
    assert both.post("/apply", body)["counts"]["resumed"] == 1
    theirs = {**LOAD, "managed_by": "somebody"}
    assert both.ask("POST", "/apply", {**body, "jobs": [LOAD, theirs]}).places == ["/jobs/1/name"]
    assert both.ask("POST", "/apply", {**body, "jobs": [theirs]}).places == ["/jobs/0/managed_by"]
    assert both.ask("POST", "/plan", {"jobs": [], "prune": "delete"}).places == ["/prune"]
    wrong = {"calendars": [{"name": "days"}], "jobs": [{**LOAD, "schedule": {"cron": "x"}}, {"name": "-"}], "dry": 1}
    assert both.ask("POST", "/apply", wrong).places == ["/dry"]
    del wrong["dry"]
    places = both.ask("POST", "/apply", wrong).places
    assert "/jobs/0/schedule/cron" in places
    assert "/jobs/1/name" in places
    long = {**LOAD, "name": "long", "description": "x" * 900}
    many = {"jobs": [{**long, "name": f"many-{at:04}", "tenant": "big"} for at in range(1_200)]}  # more than a megabyte
    assert both.post("/apply", {**many, "dry_run": True})["counts"]["created"] == 1_200


def test_documents_without_a_manager_take_nothing_over(both: Api) -> None:
    both.post("/apply", {"jobs": [LOAD], "managed_by": "our shop"})
    told = both.post("/apply", {"jobs": [{**LOAD, "run": {"command": ["false"]}}]})
    assert told["counts"]["refused"] == 1
    assert "add --managed-by 'our shop'" in told["jobs"][0]["reason"]
    plan = both.post("/plan", {"jobs": [LOAD]})
    assert [(job["change"], job["reason"]) for job in plan["jobs"]] == [("!", told["jobs"][0]["reason"])]
    assert both.get("/jobs/load")["revision"] == 1


def test_what_is_changed_by_hand_stays_with_whom_it_belongs_to(both: Api) -> None:
    """An incident needs that; but the files that keep a job must find it again."""

    def batch(document: dict[str, Any], **query: str) -> str:
        headers = {"Content-Type": "application/x-ndjson"}
        told = both.post("/jobs/batch", raw=json.dumps(document).encode(), headers=headers, **query)
        return str(told["items"][0]["done"])

    def whose() -> str | None:
        owner: str | None = both.get("/jobs/load")["definition"]["managed_by"]
        return owner

    both.post("/apply", {"jobs": [LOAD], "managed_by": "shop"})
    match = {"If-Match": "*"}
    changed = {**LOAD, "timeout": "5m"}
    assert both.put("/jobs/load", changed, headers=match)["definition"]["timeout"] == "5m"
    assert both.patch("/jobs/load", {"timeout": "6m"}, headers=match)["definition"]["timeout"] == "6m"
    assert (batch({**LOAD, "timeout": "7m"}), whose()) == ("changed", "shop")
    assert both.put("/jobs/load", {**LOAD, "managed_by": "other"}, headers=match)["definition"]["timeout"] != "7m"
    assert whose() == "other"
    assert (batch({**LOAD, "managed_by": "third"}), whose()) == ("changed", "third")
    assert (batch({**LOAD, "managed_by": None}), whose()) == ("changed", None)
    both.patch("/jobs/load", {"managed_by": "shop"}, headers=match)
    both.put("/jobs/load", {**LOAD, "managed_by": None}, headers=match)
    assert whose() is None
    assert batch({**LOAD, "name": "new"}) == "created"
    assert both.get("/jobs/new")["definition"]["managed_by"] is None


def test_what_is_sent_in_another_request_is_not_gone(api: Api) -> None:
    body = {"managed_by": "shop", "prune": "delete"}
    api.post("/apply", {"jobs": [LOAD, {**LOAD, "name": "b"}, {**LOAD, "name": "c"}], **body})
    for route in ("/plan", "/apply"):
        rest = api.post(route, {"jobs": [LOAD], **body, "besides": ["default/b", "other/c"]})
        assert [job["name"] for job in rest["jobs"] if job["done"] == "deleted"] == ["c"]
    assert names(api) == ["default/b", "default/load"]
    refused = api.ask("POST", "/apply", {"jobs": [LOAD], **body, "besides": ["default/b", "b"]})
    assert refused.places == ["/besides/1"]  # a name alone would keep nothing


def test_a_key_of_one_tenant_applies_what_is_its_own(both: Api) -> None:
    both.post("/apply", {"jobs": [{**LOAD, "tenant": "acme"}], "managed_by": "shop"})
    eve = both.acting(both.key("eve", Role.OPERATOR, "shop"))
    for route in ("/apply", "/plan"):
        eve.post(route, {"jobs": [{**LOAD, "tenant": "acme"}]}, 404)
        eve.post(route, {"calendars": [{**DAYS, "tenant": "acme"}]}, 404)
    gone = eve.post(
        "/apply", {"jobs": [LOAD], "managed_by": "shop", "prune": "delete"}
    )  # acme has a job of this manager
    assert [(job["tenant"], job["done"]) for job in gone["jobs"]] == [("shop", "created")]
    assert [job["tenant"] for job in eve.post("/plan", {"managed_by": "shop", "prune": "delete"})["jobs"]] == ["shop"]
    assert names(both) == ["acme/load", "shop/load"]
