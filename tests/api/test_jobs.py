"""Jobs over HTTP, on a real server: S0-57 … S0-61, S1-34, S1-36 … S1-38, S4-23 … S4-25, S4-27."""

import http.client
import json
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from fleetcron.api.context import digest
from fleetcron.model.access import Role
from tests.api.server import V1, Api
from tests.store.floor import ok

JOB: dict[str, Any] = {
    "name": "report",
    "schedule": {"cron": "0 2 * * *", "timezone": "America/New_York"},
    "run": {"command": ["true"]},
}
MINUTELY: dict[str, Any] = {"name": "tick", "schedule": {"cron": "* * * * *"}, "run": {"command": ["true"]}}


def test_a_job_is_created_shown_listed_and_deleted(both: Api) -> None:
    """S0-57, S4-23, S4-25."""
    made = both.ask("POST", "/jobs", JOB)
    assert made.status == 201, made.body
    assert made.headers["location"] == "/api/v1/jobs/report"
    job = made.json
    assert job["definition"]["retry"]["max_attempts"] == 4  # defaults are shown
    assert [job["state"], job["revision"], job["created_by"], job["health"]] == ["active", 1, "key:ann", "new"]
    assert job["next"][0] == {"scheduled_for": "2027-01-16T07:00:00Z", "local": "2027-01-16 02:00-05:00"}
    shown = both.ask("GET", "/jobs/report")
    assert shown.json == {**job, "warnings": []}
    assert shown.headers["etag"] == made.headers["etag"]
    [line] = both.get("/jobs")["jobs"]
    assert (line["name"], line["next"], line["last"]) == ("report", "2027-01-16T07:00:00Z", None)
    assert both.post("/jobs", JOB, 409)["detail"] == "the name is taken"
    gone = both.delete("/jobs/report", headers={"If-Match": shown.headers["etag"]})
    assert gone["done"] == "deleted"
    both.get("/jobs/report", 404)
    assert [each["action"] for each in both.get("/jobs/report/revisions")["revisions"]] == ["delete", "create"]


def test_every_mistake_is_told_at_once_with_its_place(api: Api) -> None:
    wrong = {**JOB, "schedule": {"cron": "61 * * * *"}, "retyr": {}, "timeout": "soon", "priority": 900}
    refused = api.ask("POST", "/jobs", wrong)
    assert refused.status == 422
    assert sorted(refused.places) == ["/priority", "/retyr", "/schedule/cron", "/timeout"]
    [unknown] = [each for each in refused.json["errors"] if each["pointer"] == "/retyr"]
    assert "retry" in unknown["hint"]
    api.post("/jobs", JOB, 201)
    refused = api.ask("POST", "/jobs/report/pause", {"on_resme": "all", "on_resume": "some"})
    assert (refused.status, sorted(refused.places)) == (422, ["/on_resme", "/on_resume"])
    refused = api.ask("GET", "/jobs", limit=0, stat="active")
    assert (refused.status, refused.places) == (422, ["stat"])
    assert api.ask("GET", "/jobs", limit=0).places == ["limit"]
    assert api.post("/jobs", status=422)["errors"][0]["detail"] == "is missing"


def test_a_thousand_mistakes_and_a_megabyte_are_answered_in_time(api: Api) -> None:
    began = time.monotonic()
    many = {**JOB, **{f"field-{number}": number for number in range(3_000)}}
    refused = api.ask("POST", "/jobs", many)
    assert refused.status == 422
    assert len(refused.json["errors"]) + refused.json["errors_left_out"] == 3_000
    full = {**JOB, "payload": {"text": "x" * 1_000_000}}
    assert api.ask("POST", "/jobs", full).places == ["/payload"]
    assert api.ask("POST", "/jobs", {**JOB, "schedule": [{"cron": "* * * * *"}] * 5_000}).status == 422
    deep: Any = 1
    for _ in range(40):
        deep = {"a": deep}
    refused = api.ask("POST", "/jobs", {**JOB, "payload": deep})
    assert (refused.status, refused.places) == (422, ["/payload" + "/a" * 31])
    assert time.monotonic() - began < 20


def test_a_body_that_does_not_say_its_length_is_cut_off(api: Api) -> None:
    """Also when it comes in pieces."""
    place = urlsplit(api.url)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    headers = {"Authorization": f"Bearer {api._key}", "Content-Type": "application/json"}
    try:
        with suppress(BrokenPipeError, ConnectionResetError):  # it may be cut off before all of it is sent
            connection.request("POST", "/api/v1/jobs", (b"x" * 65_536 for _ in range(17)), headers, encode_chunked=True)
        assert connection.getresponse().status == 413
    finally:
        connection.close()
    large = {"raw": b"x" * (1024 * 1024 + 1), "headers": {"Content-Type": "application/json"}}
    assert api.ask("POST", "/jobs", **large).status == 413  # type: ignore[arg-type]
    assert api.ask("POST", "/jobs", raw=b"{}", headers={"Content-Type": "text/plain"}).status == 415


def test_pages_and_filters(both: Api) -> None:
    """S0-58, S1-34."""
    for number in range(5):
        extra = {"type": "export", "pool": "reports"} if number % 2 else {}
        both.post("/jobs", {**JOB, "name": f"job-{number}", **extra}, 201)
    both.post("/jobs", {**JOB, "tenant": "acme"}, 201)
    both.post("/jobs/job-4/pause")
    names, cursor = [], None
    while True:
        page = both.get("/jobs", limit=2, cursor=cursor)
        names += [f"{job['tenant']}/{job['name']}" for job in page["jobs"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert names == ["acme/report", *(f"default/job-{number}" for number in range(5))]

    def found(**query: str) -> list[str]:
        return [job["name"] for job in both.get("/jobs", **query)["jobs"]]

    assert found(type="export") == found(pool="reports") == ["job-1", "job-3"]
    assert found(state="paused") == ["job-4"]
    assert found(tenant="acme") == found(text="REP") == ["report"]
    for bad in ("x", "e30", "W10", "WyIwIl0", "é"):
        assert both.ask("GET", "/jobs", cursor=bad).status == 422


def test_who_changes_a_job_says_which_one_he_means(both: Api) -> None:
    """S4-24: effective at the next tick."""
    tag = both.ask("POST", "/jobs", JOB).headers["etag"]
    assert both.put("/jobs/report", JOB, 428)["code"] == "precondition_required"
    changed = both.ask("PUT", "/jobs/report", {**JOB, "pool": "reports"}, headers={"If-Match": tag})
    assert (changed.status, changed.json["revision"], changed.json["definition"]["pool"]) == (200, 2, "reports")
    stale = both.ask("PUT", "/jobs/report", JOB, headers={"If-Match": tag})
    assert (stale.status, stale.headers["etag"]) == (412, changed.headers["etag"])
    both.delete("/jobs/report", 412, headers={"If-Match": tag})
    patched = both.patch("/jobs/report", {"retry": {"max_attempts": 2}, "pool": None}, headers={"If-Match": "*"})
    assert (patched["definition"]["retry"]["max_attempts"], patched["definition"]["pool"]) == (2, "default")
    assert patched["definition"]["schedule"][0]["timezone"] == "America/New_York"
    assert both.ask("PATCH", "/jobs/report", {"name": "other"}, headers={"If-Match": "*"}).places == ["/name"]
    both.put("/jobs/nothing", JOB, 404, headers={"If-Match": "*"})
    found = both.get("/jobs/report/diff", from_=1, to=2)
    assert found["changes"] == [{"field": "pool", "old": "default", "new": "reports"}]
    assert both.get("/jobs/report/diff", from_=2)["to"] == 3
    both.get("/jobs/report/diff", 404, from_=9)
    history = both.get("/jobs/report/revisions")["revisions"]
    assert [(each["revision"], each["by"]) for each in history] == [(3, "key:ann"), (2, "key:ann"), (1, "key:ann")]


@pytest.mark.parametrize(
    ("given", "status", "words"),
    [
        ("", 428, "If-Match is empty: send If-Match with the ETag of the job as you know it, or *"),
        ("  ", 428, "If-Match is empty"),
        ("W/{tag}", 412, "send its ETag without W/"),
        (",", 412, "it is at revision 1 now"),
        ('"other", *', 412, "send its ETag, or * alone"),
    ],
)
def test_only_a_version_that_is_named_is_changed(api: Api, given: str, status: int, words: str) -> None:
    """A program that has lost the tag sends an empty one; it must not overwrite whatever the job is by then."""
    tag = api.ask("POST", "/jobs", JOB).headers["etag"]
    headers = {"If-Match": given.format(tag=tag)}
    for method, body in (("PUT", JOB), ("PATCH", {"pool": "reports"}), ("DELETE", None)):
        told = api.ask(method, "/jobs/report", body, headers=headers)
        assert (told.status, words in told.json["detail"]) == (status, True), (method, told.json)
    assert api.get("/jobs/report")["revision"] == 1
    api.delete("/jobs/report", headers={"If-Match": f'"other" , {tag}'})


def test_a_type_that_is_patched_is_chosen_from_then_on(api: Api) -> None:
    api.post("/jobs", JOB, 201)
    api.patch("/jobs/report", {"type": "nightly"}, headers={"If-Match": "*"})
    after = api.patch("/jobs/report", {"run": {"python": "shop:report"}}, headers={"If-Match": "*"})
    assert after["definition"]["type"] == "nightly"


def test_pause_resume_and_the_window_between(both: Api) -> None:
    """S0-59, S0-60, S1-38."""
    both.post("/jobs", MINUTELY, 201)
    paused = both.post("/jobs/tick/pause", {"on_resume": "latest"})
    assert (paused["done"], paused["state"], paused["on_resume"]) == ("paused", "paused", "latest")
    assert both.post("/jobs/tick/pause")["on_resume"] == "skip"  # another choice about the same window
    assert both.get("/jobs/tick")["health"] == "resting"
    resumed = both.post("/jobs/tick/resume", {"missed": "skip"})
    assert (resumed["done"], resumed["state"]) == ("resumed", "active")
    ended = both.post("/jobs/tick/cancel")
    assert ended["state"] == "cancelled"
    assert both.post("/jobs/tick/resume", status=409)["code"] == "refused"


def test_a_region_that_no_scheduler_serves_is_told_with_the_job(both: Api) -> None:
    told = ["no scheduler is at work in the region mars, so nobody plans its ticks (fleetcron serve --region mars)"]
    far = {**MINUTELY, "region": "mars"}
    assert both.post("/jobs/preview", far)["warnings"] == told
    assert both.post("/jobs", far, 201)["warnings"] == told
    match = {"If-Match": "*"}
    assert both.put("/jobs/tick", MINUTELY, headers=match)["warnings"] == []
    assert both.patch("/jobs/tick", {"region": "mars"}, headers=match)["warnings"] == told
    assert both.get("/jobs/tick")["health"] == "new"
    assert both.post("/apply", {"jobs": [far]})["jobs"][0]["warning"] == told[0]
    ok(both.do(both.store.shards.take("mars", [0], "node", 60_000)))
    assert both.get("/jobs/tick")["warnings"] == []


def test_a_job_is_triggered_once_for_each_key(both: Api) -> None:
    """S0-61, S1-37, S4-27: at once, outside the schedule, and never in the place of a tick."""
    both.post("/jobs", JOB, 201)
    first = both.ask("POST", "/jobs/report/trigger", {"payload": {"kind": "full"}}, headers={"Idempotency-Key": "k1"})
    assert (first.status, first.json["created"]) == (202, True)
    again = both.ask("POST", "/jobs/report/trigger", {"payload": {"kind": "full"}}, headers={"Idempotency-Key": "k1"})
    assert (again.status, again.json, again.headers["idempotent-replayed"]) == (202, first.json, "true")
    other = both.ask("POST", "/jobs/report/trigger", {"payload": {}}, headers={"Idempotency-Key": "k1"})
    assert (other.status, other.places) == (422, ["Idempotency-Key"])
    assert both.post("/jobs/report/trigger", status=202)["run_id"] != first.json["run_id"]
    refused = both.ask("POST", "/jobs/report/trigger", {"payload": {"a": "{{ x }}"}})
    assert (refused.status, refused.places) == (422, ["/payload/a"])
    assert both.ask("POST", "/jobs/report/trigger", headers={"Idempotency-Key": "x" * 256}).places == [
        "Idempotency-Key"
    ]


def test_a_key_belongs_to_the_run_whoever_asks_and_however(both: Api) -> None:
    """Over the API with two keys of it, on the database, and from a program: one run."""
    both.post("/jobs", JOB, 201)
    asked = {"payload": {"kind": "full"}, "key": "Bestellung-ß-17"}
    first = both.post("/jobs/report/trigger", asked, 202)
    other = both.acting(both.key("rotated", Role.OPERATOR))
    later = [other.post("/jobs/report/trigger", asked, 202, headers={"Idempotency-Key": key}) for key in "ab"]
    job, given = ("default", "report"), {"kind": "full"}
    steering = both.store.steering
    on_the_database = ok(both.do(steering.trigger(first["job_id"], given, actor="ann", key=asked["key"])))
    from_a_program = ok(both.do(steering.enqueue(job, given, actor="app:shop", key=asked["key"])))
    assert first["created"]
    assert later == [{**first, "created": False}] * 2
    assert {(each.run_id, each.created) for each in (on_the_database, from_a_program)} == {(first["run_id"], False)}
    # and the other way round
    begun = ok(both.do(steering.enqueue(job, None, actor="app:shop", key="night")))
    again = both.post("/jobs/report/trigger", {"key": "night"}, 202)
    assert (again["run_id"], again["created"], begun.created) == (begun.run_id, False, True)
    assert "another payload" in both.post("/jobs/report/trigger", {**asked, "payload": {}}, 409)["detail"]
    for wrong in ("", "x" * 201, "nul\0", 5):
        got = both.ask("POST", "/jobs/report/trigger", {"key": wrong})
        assert (got.status, got.places) == (422, ["/key"]), wrong


def test_a_request_that_is_sent_twice_is_carried_out_once_and_answered_alike(api: Api) -> None:
    key = {"Idempotency-Key": "create"}
    first, second = (api.ask("POST", "/jobs", JOB, headers=key) for _ in range(2))
    assert (first.status, second.status) == (201, 201)
    assert first.body == second.body
    assert first.headers["location"] == second.headers["location"]
    assert ("idempotent-replayed" in first.headers, second.headers["idempotent-replayed"]) == (False, "true")
    assert len(api.get("/jobs")["jobs"]) == 1
    # of another key of the API it is another request
    other = api.key("bob", Role.OPERATOR)
    assert api.ask("POST", "/jobs", JOB, key=other, headers=key).status == 409


def test_a_request_that_is_still_at_work_is_told_from_one_that_is_refused(api: Api) -> None:
    store, key = api.store.idempotency, "01"
    whose = api.get("/me")["key_id"]
    asked = digest("POST", f"{V1}/jobs", b"", json.dumps(JOB).encode())
    ok(api.do(store.begin(whose, key, asked, owner="another server")))
    got = api.ask("POST", "/jobs", JOB, headers={"Idempotency-Key": key})
    assert (got.status, got.json["code"], got.headers["retry-after"]) == (409, "in_progress", "1")
    assert got.json["type"] == "urn:fleetcron:problem:in_progress"
    ok(api.do(store.abandon(whose, key, owner="another server")))
    assert api.ask("POST", "/jobs", JOB, headers={"Idempotency-Key": key}).status == 201
    assert api.post("/jobs", JOB, 409)["code"] == "refused"


def test_what_was_not_carried_out_is_looked_at_anew(api: Api) -> None:
    """Whatever was in the way may be gone: a job that was not there, a name that was taken, a calendar."""

    def asked(path: str, body: object, name: str) -> int:
        got = api.ask("POST", path, body, headers={"Idempotency-Key": name})
        assert "idempotent-replayed" not in got.headers
        return got.status

    assert asked("/jobs/report/trigger", {}, "t") == 404
    assert asked("/jobs", {**JOB, "calendars": ["closed"]}, "c") == 409
    api.post("/jobs", JOB, 201)
    assert asked("/jobs", JOB, "j") == 409
    assert asked("/jobs/report/trigger", {}, "t") == 202
    api.delete("/jobs/report", headers={"If-Match": "*"})
    assert asked("/jobs", JOB, "j") == 201
    api.put("/calendars/closed", {"holidays": ["2027-01-16"]})
    api.delete("/jobs/report", headers={"If-Match": "*"})
    assert asked("/jobs", {**JOB, "calendars": ["closed"]}, "c") == 201
    assert asked("/jobs", {"name": "other"}, "m") == 422
    assert asked("/jobs", {**JOB, "name": "other"}, "m") == 201  # a mistake that was mended


def test_backfill_next_and_stats(both: Api) -> None:
    """S1-36."""
    both.post("/jobs", MINUTELY, 201)
    ask = {"from": "2027-01-15T07:50:00Z", "to": "2027-01-15T08:00:00Z"}
    assert both.post("/jobs/tick/backfill", {**ask, "dry_run": True})["created"] == 10
    done = both.post("/jobs/tick/backfill", ask)
    assert (done["ticks"], done["created"], done["from"]) == (10, 10, "2027-01-15T07:50:00Z")
    assert both.post("/jobs/tick/backfill", ask)["existing"] == 10
    assert both.ask("POST", "/jobs/tick/backfill", {"from": "soon"}).places == ["/from"]
    assert "limit" in both.post("/jobs/tick/backfill", {**ask, "limit": 3}, 409)["detail"]
    coming = both.get("/jobs/tick/next", count=2)
    assert [each["scheduled_for"] for each in coming["ticks"]] == ["2027-01-15T08:01:00Z", "2027-01-15T08:02:00Z"]
    later = both.get("/jobs/tick/next", count=1, after="2028-01-01T00:00:00Z")["ticks"]
    assert later[0]["scheduled_for"] == "2028-01-01T00:01:00Z"
    assert both.ask("GET", "/jobs/tick/next", after="x").places == ["after"]

    async def work() -> None:
        await both.floor.join("n")
        await both.floor.queue()
        first, second, *_ = await both.floor.claim("n", room=2)
        await both.floor.succeed("n", first)
        await both.floor.fail("n", second)

    both.patch("/jobs/tick", {"overlap": "allow"}, headers={"If-Match": "*"})
    both.do(work())
    found = both.get("/jobs/tick/stats")
    assert (found["total_runs"], found["states"]["succeeded"], found["success_rate"]) == (10, 1, 100.0)
    assert found["average_duration_ms"] is not None
    assert both.get("/jobs/tick/stats", to="2020-01-01T00:00:00Z")["success_rate"] is None


def test_a_job_is_looked_at_before_it_is_saved(api: Api) -> None:
    viewer = api.acting(api.key("eve", Role.VIEWER))
    document = {**JOB, "schedule": {"cron": "30 2 * * *", "timezone": "America/New_York"}}
    found = viewer.post("/jobs/preview", document, count=3)
    assert found["ticks"][0]["scheduled_for"] == "2027-01-16T07:30:00Z"
    assert any("2027-03-14" in each["date"] for each in found["clock_changes"])
    assert found["definition"]["schedule"][0]["dst_gap"] in ("skip", "shift")
    assert {each["code"] for each in found["findings"]}
    assert viewer.ask("POST", "/jobs/preview", {**JOB, "schedule": {"cron": "0 0 30 2 *"}}).places == ["/schedule/cron"]
    assert viewer.get("/jobs") == {"jobs": [], "next": None}
    viewer.post("/jobs", JOB, 403)


def ndjson(*documents: object) -> dict[str, Any]:
    text = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in documents)
    return {"raw": text.encode(), "headers": {"Content-Type": "application/x-ndjson"}}


def test_a_batch_has_an_answer_for_each_line(both: Api) -> None:
    both.post("/jobs", JOB, 201)
    lines = ndjson({**JOB, "pool": "x"}, "{", "", {**MINUTELY, "cron": 1}, MINUTELY, MINUTELY, [1])
    done = both.ask("POST", "/jobs/batch", **lines).json
    assert [(each["line"], each["done"]) for each in done["items"]] == [
        (1, "changed"), (2, "refused"), (4, "refused"), (5, "created"), (6, "refused"), (7, "refused"),
    ]  # fmt: skip
    assert done["counts"] == {"changed": 1, "created": 1, "refused": 4}
    assert done["items"][1]["reason"].startswith("the line is not JSON: Expecting property name")
    assert "line" not in done["items"][1]["reason"].removeprefix("the line")  # which one is said beside it
    assert done["items"][2]["errors"][0]["pointer"] == "/cron"
    assert "line 5 has the same name" in done["items"][4]["reason"]
    again = both.ask("POST", "/jobs/batch", mode="create", **ndjson(JOB)).json
    assert "the name is taken" in again["items"][0]["reason"]
    assert both.ask("POST", "/jobs/batch", raw=b"{}").status == 415
    place = urlsplit(both.url)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    try:  # what says that it is too long is refused before it is sent
        connection.putrequest("POST", "/api/v1/jobs/batch")
        said = {"Authorization": f"Bearer {both._key}", "Content-Type": "application/x-ndjson"}
        for name, value in {**said, "Content-Length": str(16 * 1024 * 1024 + 1)}.items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.getresponse().status == 413
    finally:
        connection.close()


def test_a_large_batch_is_one_call(api: Api) -> None:
    """More than the desk writes at once. `make bench` measures 10,000."""
    jobs = [{**JOB, "name": f"job-{at}", "payload": {"shop": at}} for at in range(1_000)]
    done = api.ask("POST", "/jobs/batch", **ndjson(*jobs)).json
    assert done["counts"] == {"created": 1_000}
    assert api.get("//healthz")
