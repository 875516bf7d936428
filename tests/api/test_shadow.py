"""Pings, the report and the hand-over over HTTP, on both engines."""

from fleetcron.model.access import Role
from tests.api.server import NOW, Api
from tests.api.test_jobs import MINUTELY

MINUTE = 60_000
OLD = {**MINUTELY, "name": "old", "shadow": True}


def test_from_a_ping_to_the_hand_over(both: Api) -> None:
    made = both.post("/jobs", OLD, 201)
    assert made["definition"]["shadow"] is True
    assert "in shadow" in made["warnings"][0]
    assert both.get("/jobs")["jobs"][0]["shadow"] is True
    both.post("/jobs", {**MINUTELY, "name": "live"}, 201)
    for minute in (1, 2, 3):
        both.do(both.floor.clock.set(NOW + minute * MINUTE + 500))
        both.do(both.floor.plan())
        body = {"event": "start", "id": f"p{minute}", "host": "web1"}
        assert both.post("/jobs/old/ping", body)["warning"] is None
        ended = both.post("/jobs/old/ping", {"id": f"p{minute}", "exit_code": 0, "host": "web1"})["ping"]
        assert (ended["started_at"], ended["exit_code"]) == (ended["at"], 0)
    report = both.get("/jobs/old/shadow")
    assert (report["verdict"], report["ticks"], report["matched"], report["hosts"]) == ("same", 3, 3, ["web1"])
    assert report["hand_over_at"] == "2027-01-15T08:14:00Z"
    assert both.get("/shadow") == {"jobs": [report], "next": None}
    both.post("/jobs/old/ping", {"duration": "1s", "exit_code": 4, "host": "web2"})
    differs = both.get("/jobs/old/shadow")
    assert [each["what"] for each in differs["differences"]] == ["failed", "doubled"]
    assert differs["hand_over_at"] is None
    assert "in shadow" in both.post("/jobs/old/trigger", None, 409)["detail"]
    assert "in shadow" in both.post("/jobs/old/backfill", {"from": "2027-01-15T08:00:00Z"}, 409)["detail"]
    assert "send `at`" in both.post("/jobs/old/hand-over", None, 409)["detail"]
    at = "2027-01-15T08:06:00Z"
    assert "no worker serves the pool default" in both.post("/jobs/old/hand-over", {"at": at}, 409)["detail"]
    assert "no worker serves the pool default" in differs["unable"]
    assert both.post("/jobs/old/hand-over", {"at": "2027-01-15T08:05:00Z", "anyway": True})["done"] == "handed_over"
    both.do(both.floor.join("w1"))
    assert both.get("/jobs/old/shadow")["unable"] is None
    done = both.post("/jobs/old/hand-over", {"at": at})
    assert (done["done"], done["last_before"], done["first_after"]) == ("handed_over", "2027-01-15T08:05:00Z", at)
    assert both.post("/jobs/old/hand-over", {"at": at})["done"] == "unchanged"
    # whoever replaces the job by a file that does not know of it changes nothing about it
    kept = both.put("/jobs/old", {**MINUTELY, "name": "old"}, headers={"If-Match": "*"})
    assert kept["definition"]["shadow"] == at
    both.do(both.floor.clock.set(NOW + 7 * MINUTE))
    assert "runs twice now" in both.post("/jobs/old/ping", {"event": "start", "id": "late"})["warning"]
    both.do(both.floor.store.workers.lack("w1", {"command": "not here"}))
    told = both.post("/jobs/old/ping", {"event": "start", "id": "late"})["warning"]
    assert "our runs wait: no worker of the pool default can run command (w1: not here)" in told
    assert both.get("/jobs/old/shadow")["after_hand_over"] == 0, "its ticks are not noted yet"
    both.do(both.floor.plan())
    assert both.get("/jobs/old/shadow")["after_hand_over"] == 1
    back = both.post("/jobs/old/shadow")
    assert (back["done"], back["shadow"], back["first_after"]) == ("shadowed", True, "2027-01-15T08:08:00Z")
    assert "not in shadow" in both.post("/jobs/live/hand-over", {"at": at}, 409)["detail"]


def test_what_cannot_be(api: Api) -> None:
    api.post("/jobs", OLD, 201)
    crontab = api.acting(api.key("web1", Role.PING, "default"))
    assert crontab.post("/jobs/old/ping")["shadow"] is True
    crontab.get("/jobs", 403)
    for body in (
        {"event": "middle"}, {"exit_code": 2**40}, {"duration": "soon"}, {"id": ""}, {"host": "a\nb"}, {"when": 1},
        {"event": "start", "exit_code": 0},
    ):  # fmt: skip
        api.post("/jobs/old/ping", body, 422)
    api.post("/jobs/old/hand-over", {"at": "soon"}, 422)
    api.post("/jobs/nothing/ping", None, 404)
    api.post("/jobs", {**MINUTELY, "name": "live"}, 201)
    for name, said in (("old", False), ("old", None), ("live", True)):
        before = api.get(f"/jobs/{name}")["definition"]
        for change, body in ((api.patch, {}), (api.put, before)):
            other = {**body, "shadow": said, "pool": "x"}
            refused = change(f"/jobs/{name}", other, 422, headers={"If-Match": "*"})
            assert refused["errors"][0]["pointer"] == "/shadow"
            assert "/hand-over ends a shadow" in refused["errors"][0]["hint"]
            assert api.get(f"/jobs/{name}")["definition"]["pool"] == "default"
    api.patch("/jobs/old", {"shadow": True, "pool": "x"}, headers={"If-Match": "*"})
    api.put("/jobs/old", {**OLD, "pool": "y"}, headers={"If-Match": "*"})
    assert api.get("/jobs/old")["definition"]["shadow"] is True
    api.get("/jobs/nothing/shadow", 404)
    api.get("/shadow", 422, since="soon")
    api.post("/jobs", {**OLD, "name": "odd", "shadow": "soon"}, 422)
    until = api.post("/jobs", {**OLD, "name": "until", "shadow": "2027-01-15T10:00:00+01:00"}, 201)
    assert until["definition"]["shadow"] == "2027-01-15T09:00:00Z"
    page = api.get("/shadow", limit=1)
    assert [each["name"] for each in page["jobs"]] == ["old"]
    assert [each["name"] for each in api.get("/shadow", limit=1, cursor=page["next"])["jobs"]] == ["until"]
