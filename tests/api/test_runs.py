"""Runs over HTTP: S0-62, S1-35, S4-26; logs and their live tail, steering, dead letters, the ledger and events."""

import http.client
import json
import threading
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from fleetcron.api import run_log
from fleetcron.model.access import Role
from fleetcron.policy.access import Places
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.scheduler.tables import Tables
from fleetcron.store.claims import Claimed
from tests.api.server import Api
from tests.api.test_jobs import MINUTELY
from tests.store.check_attempts import Chunk
from tests.store.floor import ok


def worked(api: Api, *ends: str) -> list[Claimed]:
    """One minute after the other: its runs succeed, fail, die, or are left running."""
    done: list[Claimed] = []

    async def work() -> None:
        floor = api.floor
        await floor.join("n")
        for end in ends:
            await floor.next_minute()
            run = (await floor.claim("n"))[-1]
            done.append(run)
            if end == "succeed":
                await floor.succeed("n", run)
            elif end == "die":
                await floor.fail("n", run)
                while True:
                    await floor.clock.advance(3_600_000)
                    await floor.queue()
                    again = [each for each in await floor.claim("n") if each.run_id == run.run_id]
                    if again:
                        await floor.fail("n", again[0])
                        break

    api.do(work())
    return done


def test_runs_by_time_state_job_and_tenant(both: Api) -> None:
    """S0-62, S1-35, S4-26."""
    both.post("/jobs", {**MINUTELY, "overlap": "allow"}, 201)
    first, second, last = worked(both, "succeed", "succeed", "run")
    page = both.get("/jobs/tick/runs", limit=2)
    assert [each["run_id"] for each in page["runs"]] == [last.run_id, second.run_id]
    [oldest] = both.get("/jobs/tick/runs", limit=2, cursor=page["next"])["runs"]
    assert (oldest["run_id"], oldest["state"], oldest["attempt"]) == (first.run_id, "succeeded", 1)
    assert {"scheduled_for", "started_at", "finished_at", "duration_ms", "reason", "node_id"} <= oldest.keys()

    def found(**query: Any) -> list[int]:
        return [each["run_id"] for each in both.get("/runs", **query)["runs"]]

    assert found(state="running") == [last.run_id]
    assert found(state="succeeded", job="tick") == [second.run_id, first.run_id]
    assert found(from_="2027-01-15T08:02:00Z", to="2027-01-15T08:03:00Z") == [second.run_id]
    assert found(tenant="acme") == []
    both.get("/jobs/nothing/runs", 404)
    shown = both.get(f"/runs/{first.run_id}")
    assert (shown["state"], shown["attempts"][0]["result"], shown["why"][:9]) == ("succeeded", {"rows": 3}, "succeeded")
    assert both.get(f"/runs/{first.run_id}/attempts")["attempts"] == shown["attempts"]
    assert "attempt 1 runs on n" in both.get(f"/runs/{last.run_id}/why")["why"]
    assert both.get("/jobs/tick/why", at="2027-01-15T08:01:00Z")["run_id"] == first.run_id
    assert "is no tick" in both.get("/jobs/tick/why", at="2027-01-15T08:01:30Z")["why"]
    both.get("/runs/99999", 404)
    assert both.ask("GET", "/runs/0").places == ["run_id"]
    line = both.get("/jobs/tick")
    assert line["last"]["run_id"] == last.run_id


def test_the_log_of_a_run_and_its_live_tail(both: Api) -> None:
    both.post("/jobs", MINUTELY, 201)
    [run] = worked(both, "run")

    def prints(seq: int, text: str) -> None:
        ok(both.do(both.store.output.append("n", [Chunk(run.run_id, run.attempt, seq, text)])))

    prints(0, "one\n")
    page = both.get(f"/runs/{run.run_id}/log")
    assert [(each["seq"], each["text"]) for each in page["pieces"]] == [(0, "one\n")]
    assert (page["ended"], page["is_final"]) == (False, False)
    assert both.get(f"/runs/{run.run_id}/log", cursor=page["next"])["pieces"] == []
    assert both.get(f"/runs/{run.run_id}/log", attempt=1) == page
    nothing = both.get(f"/runs/{run.run_id}/log", 404, attempt=9)
    assert nothing["detail"] == f"there is no attempt 9 of run {run.run_id}: the latest is 1"
    heard: list[tuple[str, str, str]] = []
    first_came = threading.Event()

    def listen(last: str | None = None) -> None:
        for event in events(both, f"/runs/{run.run_id}/log/stream", last):
            heard.append(event)
            first_came.set()

    listening = threading.Thread(target=listen)
    listening.start()
    assert first_came.wait(30)
    prints(1, "two ☂\n")
    both.do(both.floor.succeed("n", run))
    listening.join(30)
    assert [(kind, place) for kind, place, _ in heard] == [("log", "1.0"), ("log", "1.1"), ("end", "")]
    assert json.loads(heard[1][2])["text"] == "two ☂\n"
    assert len(both.context.streams) == 0
    assert [each[:2] for each in events(both, f"/runs/{run.run_id}/log/stream", "1.0")] == [("log", "1.1"), ("end", "")]


def events(api: Api, path: str, last: str | None, **more: str) -> Any:
    """Server-sent events: kind, id and data of each, as they come."""
    place = urlsplit(api.url)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    headers = {**(more or {"Authorization": f"Bearer {api._key}"}), **({} if last is None else {"Last-Event-ID": last})}
    try:
        connection.request("GET", f"/api/v1{path}", headers=headers)
        response = connection.getresponse()
        assert response.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for raw in response:
            line = raw.decode().rstrip("\n")
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "event" in fields:
                yield fields["event"], fields.get("id", ""), fields["data"]
                fields = {}
    finally:
        connection.close()


def test_a_server_that_ends_does_not_wait_for_its_readers(api: Api) -> None:
    api.post("/jobs", MINUTELY, 201)
    [run] = worked(api, "run")
    stream = events(api, f"/runs/{run.run_id}/log/stream", None)
    ok(api.do(api.store.output.append("n", [Chunk(run.run_id, run.attempt, 0, "x")])))
    assert next(stream)[0] == "log"

    async def close() -> None:
        api.context.closing.set()

    api.do(close())
    assert list(stream) == []


def followed(api: Api) -> str:
    """The path of the log of a run that goes on, with a piece in it."""
    api.post("/jobs", MINUTELY, 201)
    [run] = worked(api, "run")
    ok(api.do(api.store.output.append("n", [Chunk(run.run_id, run.attempt, 0, "x")])))
    return f"/runs/{run.run_id}/log/stream"


def test_a_stream_ends_with_the_key_or_the_session(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    path = followed(api)
    soon = api.acting(api.key("soon", Role.VIEWER, lasts_ms=1_000))
    leaky = api.acting(api.key("leaky", Role.VIEWER))
    login = api.ask("POST", "/session", key=api.key("eve", Role.VIEWER))
    cookie = login.headers["set-cookie"].partition(";")[0]
    readers = [events(soon, path, None), events(leaky, path, None), events(api, path, None, Cookie=cookie)]
    staying = events(api, path, None)
    assert [next(each)[0] for each in (*readers, staying)] == ["log"] * 4
    api.do(api.floor.clock.advance(1_000))
    ok(api.do(api.store.keys.revoke(str(leaky._key).split("_")[1], "leaked", actor="test")))
    csrf = {"Cookie": cookie, "Fleetcron-CSRF": login.json["csrf"]}
    assert api.acting(None).delete("/session", headers=csrf) == {"ended": True}
    monkeypatch.setattr(run_log, "LOOK_EVERY_S", 0.01)
    ok(api.do(api.store.output.append("n", [Chunk(int(path.split("/")[2]), 1, 1, "secret")])))
    said = [next(each) for each in readers]
    assert [kind for kind, _, _ in said] == ["refused"] * 3
    assert [list(each) for each in readers] == [[]] * 3
    details = [json.loads(each[2])["detail"] for each in said]
    assert ["has expired" in details[0], "was revoked" in details[1], "session has ended" in details[2]] == [True] * 3
    assert next(staying)[0] == "log"
    staying.close()


def test_nobody_keeps_all_streams_for_himself(api: Api) -> None:
    path = followed(api)
    api.context.streams = Places(8, 2)
    open_ = [events(api, path, None) for _ in range(2)]
    assert [next(each)[0] for each in open_] == ["log"] * 2
    refused = refusal(api, path)
    assert (refused["status"], refused["code"]) == (429, "too_many_requests")
    assert "this key follows" in refused["detail"]
    others = [api.acting(api.key(f"other-{number}", Role.VIEWER)) for number in range(4)]
    open_ += [events(other, path, None) for other in others[:3] for _ in range(2)]
    assert [next(each)[0] for each in open_[2:]] == ["log"] * 6
    busy = refusal(others[3], path)
    assert (busy["status"], busy["code"], busy["title"]) == (503, "busy", "This node serves as many as it can")
    for each in open_:
        each.close()


def refusal(api: Api, path: str) -> Any:
    """Without waiting for the end of a stream, if it is one after all."""
    place = urlsplit(api.url)
    with closing(http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)) as connection:
        connection.request("GET", f"/api/v1{path}", headers={"Authorization": f"Bearer {api._key}"})
        response = connection.getresponse()
        assert (response.status >= 400, response.headers["retry-after"]) == (True, "5")
        return json.load(response)


def test_runs_are_cancelled_replayed_and_discarded(both: Api) -> None:
    both.post("/jobs", {**MINUTELY, "overlap": "allow"}, 201)
    dead, running = worked(both, "die", "run")
    [letter] = both.get("/dead")["dead"]
    assert (letter["run_id"], letter["error"]["code"], letter["failures"]) == (dead.run_id, "ValueError", 2)
    assert both.get("/dead", error="KeyError") == {"dead": [], "next": None}
    gone = both.post(f"/runs/{dead.run_id}/discard", {"reason": "known"})
    assert (gone["done"], both.get("/dead")["dead"]) == ("discarded", [])
    assert both.post(f"/runs/{dead.run_id}/replay")["done"] == "replayed"
    assert both.post(f"/runs/{running.run_id}/cancel", {"reason": "stop"})["done"] == "stopping"
    assert both.post(f"/runs/{dead.run_id}/cancel")["done"] == "cancelled"
    assert "it is" in both.post(f"/runs/{dead.run_id}/discard", {"reason": "x"}, 409)["detail"]
    many = both.post("/runs/replay", {"run_ids": [dead.run_id, 99_999, dead.run_id]})["runs"]
    assert [(each["run_id"], each["done"]) for each in many] == [(dead.run_id, "replayed"), (99_999, "refused")]
    both.post("/runs/cancel", {"run_ids": [dead.run_id]})
    assert both.post("/runs/discard", {"run_ids": [dead.run_id], "reason": "x"})["runs"][0]["done"] == "refused"
    assert both.ask("POST", "/runs/replay", {"run_ids": []}).places == ["/run_ids"]
    assert both.ask("POST", "/runs/replay", {"run_ids": [2**63]}).status == 422
    assert both.ask("POST", f"/runs/{dead.run_id}/discard").status == 422
    kinds = {each["kind"]: each["by"] for each in both.get("/events", job="tick")["events"]}
    assert kinds["run_replayed"] == kinds["run_discarded"] == kinds["job_created"] == "key:ann"
    assert [each["kind"] for each in both.get("/events", kind="run_dead")["events"]] == ["run_dead"]
    assert both.ask("GET", "/events", kind="x").places == ["kind"]


def test_dead_letters_are_replayed_by_what_they_are_like(both: Api) -> None:
    both.post("/jobs", {**MINUTELY, "overlap": "allow"}, 201)
    worked(both, "die", "die")
    like = {"job": "tick", "error": "ValueError"}
    assert both.post("/dead/replay", {**like, "dry_run": True}) == {
        "dead": 2, "can_be_replayed": 2, "replayed": 0, "dry_run": True,
    }  # fmt: skip
    assert both.post("/dead/replay", {"error": "KeyError"})["replayed"] == 0
    assert both.post("/dead/replay", {**like, "limit": 1})["replayed"] == 1
    assert both.post("/dead/replay", like)["replayed"] == 1
    assert both.get("/dead")["dead"] == []


def test_the_ledger_has_the_ticks_that_did_not_run(both: Api) -> None:
    """S4-26: what has no run is here, with its reason."""
    both.post("/jobs", MINUTELY, 201)
    both.post("/jobs/tick/pause")
    both.do(both.floor.clock.advance(600_000))
    both.post("/jobs/tick/resume", {"missed": "skip"})
    floor = both.floor
    both.do(fill_gaps(floor.store.gaps, Tables(floor.store.almanac), floor.held, room=100))
    [line] = both.get("/ledger", job="tick")["ledger"]
    assert (line["ticks"], line["answer"], line["reason"]) == (10, "skipped", "paused")
    assert both.get("/ledger", job="tick", answer="missed")["ledger"] == []
    assert both.get("/ledger", tenant="acme")["ledger"] == []


def test_what_belongs_to_another_tenant_is_not_there(both: Api) -> None:
    both.post("/jobs", {**MINUTELY, "tenant": "acme"}, 201)
    [run] = worked(both, "die")
    other = both.acting(both.key("eve", Role.ADMIN, "shop"))
    own = both.acting(both.key("bob", Role.VIEWER, "acme"))
    for path in ("", "/attempts", "/log", "/log/stream", "/why"):
        assert other.get(f"/runs/{run.run_id}{path}", 404)["detail"] == f"there is no run {run.run_id}"
    other.post(f"/runs/{run.run_id}/cancel", status=404)
    other.post(f"/runs/{run.run_id}/replay", status=404)
    other.post(f"/runs/{run.run_id}/discard", {"reason": "x"}, 404)
    assert other.post("/runs/replay", {"run_ids": [run.run_id]})["runs"][0]["reason"] == "there is no such run"
    assert other.post("/dead/replay", {})["dead"] == 0
    for path in ("/jobs", "/runs", "/dead", "/ledger", "/calendars"):
        assert [value for value in other.get(path).values() if value] == []
        other.get(path, 404, tenant="acme")
    # of events there is its own key alone: neither that of the fleet nor that of the other tenant
    [event] = other.get("/events")["events"]
    assert (event["kind"], event["detail"]["name"]) == ("key_created", "eve")
    other.get("/events", 404, tenant="acme")
    assert [each["name"] for each in own.get("/jobs")["jobs"]] == ["tick"]
    assert own.get(f"/runs/{run.run_id}")["tenant"] == "acme"
    assert [each["run_id"] for each in own.get("/dead")["dead"]] == [run.run_id]
    assert other.get("/overview")["dead_letters"] == 0
    assert own.get("/overview")["dead_letters"] == 1
