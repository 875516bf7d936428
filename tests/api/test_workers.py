"""Workers in any language: the protocol, its guards, and the two examples against the real server."""

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fleetcron.errors import StoreUnavailable
from fleetcron.model.access import Role
from fleetcron.policy.access import Limiter, Turn
from fleetcron.store.queue import Queue
from fleetcron.worker.settling import settling
from tests.api.server import Api
from tests.api.test_jobs import MINUTELY
from tests.api.test_runs import events
from tests.store.floor import ok

EXAMPLES = Path(__file__).parents[2] / "examples/workers"
HELLO: dict[str, Any] = {
    "name": "hello",
    "schedule": {"cron": "0 0 1 1 *"},
    "pool": "reports",
    "run": {"python": "shop:hello"},
    "payload": {"who": "{{ job.name }}"},
}


def joined(api: Api, pool: str = "default", slots: int = 4, **key: Any) -> tuple[Api, str]:
    """A key of its own, and the path of a worker that has begun."""
    worker = api.acting(api.key(f"host-{len(key)}-{slots}", Role.WORKER, pools=(pool,), **key))
    made = worker.post("/workers", {"name": "w", "pools": {pool: slots}}, 201)
    assert made["heartbeat_ms"] * 3 <= made["lease_ms"]
    return worker, f"/workers/{made['worker_id']}"


def test_a_run_is_claimed_worked_on_and_finished(both: Api) -> None:
    both.post("/jobs", {**MINUTELY, "overlap": "allow", "payload": {"at": "{{ scheduled_for }}"}}, 201)
    worker, me = joined(both)
    assert worker.post(f"{me}/claim", {"pool": "default"})["runs"] == []
    both.do(both.floor.plan())
    assert worker.post(f"{me}/claim", {"pool": "default"})["runs"] == []  # never before its instant
    both.do(both.floor.clock.advance(60_000))
    got = worker.post(f"{me}/claim", {"pool": "default", "batch": "b1", "room": 9})
    [run] = got["runs"]
    assert (run["handler"], run["payload"], run["attempt"]) == ("command", {"at": "2027-01-15T08:01:00Z"}, 1)
    assert worker.post(f"{me}/claim", {"pool": "default", "batch": "b1"}) == {**got, "now": got["now"]}  # lost reply
    key = {"run_id": run["run_id"], "attempt": 1}
    said = {"pieces": [{**key, "seq": 0, "text": "half\n"}], "progress": [{**key, "share": 0.5, "note": "half"}]}
    assert worker.post(f"{me}/log", said) == {"stored": 1, "refused": 0}
    both.do(both.floor.clock.advance(2_000))
    shown = both.get(f"/runs/{run['run_id']}")
    assert (shown["state"], shown["progress"], shown["note"]) == ("running", 0.5, "half")
    both.post(f"/runs/{run['run_id']}/cancel", {"reason": "enough"})
    [stop] = worker.post(f"{me}/heartbeat")["cancels"]
    assert (stop["run_id"], "enough" in stop["reason"]) == (run["run_id"], True)
    end = {**key, "outcome": "succeeded", "duration_ms": 10**9, "result": {"rows": 3}}
    [done] = worker.post(f"{me}/finish", {"ends": [end]})["ends"]
    assert (done["accepted"], done["state"]) == (True, "succeeded")
    for asked in ({"ends": [end], "again": True}, {"ends": [end]}):  # the reply to the first time was lost
        [again] = worker.post(f"{me}/finish", asked)["ends"]
        assert (again["accepted"], again["state"]) == (True, "succeeded")
    [late] = worker.post(f"{me}/finish", {"ends": [{**end, "outcome": "failed"}]})["ends"]
    assert (late["accepted"], late["state"]) == (False, None)
    [attempt] = both.get(f"/runs/{run['run_id']}")["attempts"]
    assert (attempt["result"], attempt["duration_ms"]) == ({"rows": 3}, 2_000)  # it cannot have begun before its claim
    assert both.get(f"/runs/{run['run_id']}/log")["pieces"][0]["text"] == "half\n"
    assert worker.delete(me)["left"]
    assert "join anew" in worker.post(f"{me}/claim", {"pool": "default"}, 409)["detail"]


def test_what_is_queued_is_claimed_although_nothing_can_be_queued(both: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    both.post("/jobs", MINUTELY, 201)
    worker, me = joined(both)
    both.do(both.floor.next_minute())

    async def promote(*_: object) -> None:
        raise StoreUnavailable("too slow")

    monkeypatch.setattr(Queue, "promote", promote)
    assert len(worker.post(f"{me}/claim", {"pool": "default"})["runs"]) == 1


def test_how_an_attempt_ended_decides_what_becomes_of_its_run(both: Api) -> None:
    ends: dict[str, tuple[dict[str, Any], str]] = {
        "ok": ({"outcome": "succeeded"}, "succeeded"),
        "bad": ({"outcome": "failed", "error": {"code": "KeyError", "text": "no\0thing"}}, "retrying"),
        "slow": ({"outcome": "timed_out"}, "retrying"),
        "later": ({"outcome": "snoozed", "snooze_ms": 60_000}, "retrying"),
        "soon": ({"outcome": "failed", "retry_after_ms": 5_000}, "retrying"),
        "unsaid": ({"outcome": "failed", "retry_after_ms": 0}, "retrying"),
        "left": ({"outcome": "stopped"}, "retrying"),
        "never": ({"outcome": "failed", "error": {"code": "Fatal"}}, "dead"),
    }
    for name in ends:
        both.post("/jobs", {**MINUTELY, "name": name, "retry": {"give_up_on": ["Fatal"]}}, 201)
    worker, me = joined(both, slots=9)
    both.do(both.floor.next_minute())
    runs = worker.post(f"{me}/claim", {"pool": "default", "room": 9})["runs"]
    assert sorted(run["job"] for run in runs) == sorted(ends)
    said = [{"run_id": run["run_id"], "attempt": 1, "duration_ms": 0, **ends[run["job"]][0]} for run in runs]
    done = worker.post(f"{me}/finish", {"ends": said})["ends"]
    assert {run["job"]: each["state"] for run, each in zip(runs, done, strict=True)} == {
        name: state for name, (_, state) in ends.items()
    }
    due = {name: both.get(f"/runs?job={name}&state=retrying")["runs"][0] for name in ("soon", "unsaid", "left")}
    left = due["left"]
    assert (left["failures"], left["losses"], left["attempt"]) == (0, 0, 1)  # an orderly stop costs nothing
    assert due["soon"]["next_try"] < due["unsaid"]["next_try"]  # 5 s and not 30
    again = [each for each in said if each["outcome"] == "stopped"]
    assert [one["accepted"] for one in worker.post(f"{me}/finish", {"ends": again, "again": True})["ends"]] == [True]
    big = {"run_id": 1, "attempt": 1, "outcome": "succeeded", "duration_ms": 0, "result": "x" * 70_000}
    assert worker.ask("POST", f"{me}/finish", {"ends": [big]}).places == ["/ends/0/result"]


@pytest.mark.parametrize("attempts", [(99, 1), (1, 99)])
def test_each_end_hears_what_became_of_it(both: Api, attempts: tuple[int, int]) -> None:
    """Of several attempts of one run the one that is held counts, and the others hear that they do not."""
    worker, me, run_id = busy(both)
    ends = [{**end(run_id), "attempt": attempt} for attempt in attempts]
    for asked in ({"ends": ends}, {"ends": ends, "again": True}):
        done = worker.post(f"{me}/finish", asked)["ends"]
        assert [(each["attempt"], each["accepted"]) for each in done] == [(each, each == 1) for each in attempts]
        assert {each["state"] for each in done} == {"succeeded", None}


def test_an_attempt_ends_once_and_says_how_long_it_snoozes(both: Api) -> None:
    """All mistakes come at once, and nothing is written."""
    worker, me, run_id = busy(both)
    failed, snoozed = {**end(run_id), "outcome": "failed"}, {**end(run_id), "attempt": 2, "outcome": "snoozed"}
    told = worker.ask("POST", f"{me}/finish", {"ends": [end(run_id), failed, snoozed]})
    assert (told.status, told.places) == (422, ["/ends/1", "/ends/2/snooze_ms"])
    assert told.json["errors"][0]["detail"] == f"attempt 1 of run {run_id} ends in /ends/0 already"
    assert "say after how many milliseconds" in told.json["errors"][1]["hint"]
    assert both.get(f"/runs/{run_id}")["state"] == "running"
    [done] = worker.post(f"{me}/finish", {"ends": [{**snoozed, "attempt": 1, "snooze_ms": 60_000}]})["ends"]
    assert (done["accepted"], done["state"]) == (True, "retrying")


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "timed_out", "cancelled", "snoozed", "stopped"])
def test_what_was_asked_to_stop_is_cancelled_unless_it_succeeded(both: Api, outcome: str) -> None:
    worker, me, run_id = busy(both)
    both.post(f"/runs/{run_id}/cancel", {"reason": "enough"})
    said = {**end(run_id), "outcome": outcome, "snooze_ms": 1_000}
    [done] = worker.post(f"{me}/finish", {"ends": [said]})["ends"]
    assert (done["accepted"], done["state"]) == (True, "succeeded" if outcome == "succeeded" else "cancelled")
    assert both.get(f"/runs/{run_id}")["attempts"][0]["outcome"] == {"stopped": "lost"}.get(outcome, outcome)


def test_the_first_text_under_a_number_stays(both: Api) -> None:
    worker, me, run_id = busy(both)

    def piece(seq: int, text: str) -> dict[str, Any]:
        return {"run_id": run_id, "attempt": 1, "seq": seq, "text": text}

    told = worker.ask("POST", f"{me}/log", {"pieces": [piece(0, "a"), piece(1, "b"), piece(0, "c"), piece(1, "b")]})
    assert (told.status, told.places) == (422, ["/pieces/2/seq", "/pieces/3/seq"])
    assert told.json["errors"][0]["detail"] == "0 is that of /pieces/0 too"
    assert worker.post(f"{me}/log", {"pieces": [piece(0, "a"), piece(1, "b")]}) == {"stored": 2, "refused": 0}
    for again in ("b", "other"):
        assert worker.post(f"{me}/log", {"pieces": [piece(1, again)]})["refused"] == 0
    assert [each["text"] for each in both.get(f"/runs/{run_id}/log")["pieces"]] == ["a", "b"]


def test_a_worker_that_was_declared_lost_may_still_say_what_its_attempt_printed(both: Api) -> None:
    """It stays in that attempt. Progress and ends are for whoever holds the run."""
    worker, me, run_id = busy(both)
    [seen] = both.do(both.store.workers.list()).workers
    ok(both.do(both.store.workers.bury(seen, settling({}, lambda: 0.5), gone=True, by="n2")))
    worker.post(f"{me}/heartbeat", status=409)
    key = {"run_id": run_id, "attempt": 1}
    said = {"pieces": [{**key, "seq": 0, "text": "so far\n"}, {**key, "attempt": 2, "seq": 0, "text": "not mine"}]}
    marks = [{**key, "share": 0.5, "note": "half"}]
    assert worker.post(f"{me}/log", {**said, "progress": marks}) == {"stored": 1, "refused": 1}
    assert [each["text"] for each in both.get(f"/runs/{run_id}/log")["pieces"]] == ["so far\n"]
    assert both.get(f"/runs/{run_id}")["progress"] is None
    for said in (end(run_id), {**end(run_id), "outcome": "stopped"}):  # it was lost, and that did cost a loss
        assert worker.post(f"{me}/finish", {"ends": [said]})["ends"][0]["accepted"] is False


def busy(api: Api) -> tuple[Api, str, int]:
    """A worker with one run."""
    api.post("/jobs", HELLO, 201)
    worker, me = joined(api, "reports")
    api.post("/jobs/hello/trigger", status=202)
    [run] = worker.post(f"{me}/claim", {"pool": "reports"})["runs"]
    return worker, me, run["run_id"]


def test_what_a_worker_cannot_do_goes_back_and_says_why(both: Api) -> None:
    both.post("/jobs", HELLO, 201)
    worker, me = joined(both, "reports")
    both.post("/jobs/hello/trigger", status=202)
    [run] = worker.post(f"{me}/claim", {"pool": "reports"})["runs"]
    back: dict[str, Any] = {"runs": [{"run_id": run["run_id"], "attempt": 1, "batch": run["batch"]}]}
    assert worker.post(f"{me}/return", back) == {"runs": 1}
    [again] = worker.post(f"{me}/claim", {"pool": "reports"})["runs"]
    assert (again["run_id"], again["attempt"]) == (run["run_id"], 1)
    assert worker.post(f"{me}/return", back) == {"runs": 0}  # sent twice: it is not about this claim
    back["runs"][0]["batch"] = again["batch"]
    assert worker.post(f"{me}/return", {**back, "lacks": {"python:shop:hello": "not mine"}}) == {"runs": 1}
    assert worker.post(f"{me}/claim", {"pool": "reports", "lacks": ["python:shop:hello"]})["runs"] == []
    shown = both.get(f"/runs/{run['run_id']}")
    assert (shown["state"], shown["failures"]) == ("waiting", 0)
    assert "shop:hello" in shown["why"]


def test_slots_pools_and_owners_are_guarded(both: Api) -> None:
    both.post("/jobs", {**MINUTELY, "overlap": "allow"}, 201)
    for _ in range(4):
        both.post("/jobs/tick/trigger", status=202)
    worker, me = joined(both, slots=2)
    assert len(worker.post(f"{me}/claim", {"pool": "default", "room": 9})["runs"]) == 2
    assert worker.post(f"{me}/claim", {"pool": "default", "room": 9})["runs"] == []
    worker.post("/workers", {"name": "w", "pools": {"other": 1}}, 403)
    worker.post(f"{me}/claim", {"pool": "other"}, 403)
    assert "still holds" in worker.delete(me, 409)["detail"]
    other, its = joined(both, slots=3)
    for path in ("claim", "heartbeat", "log", "finish", "return"):
        body = {"claim": {"pool": "default"}, "finish": {"ends": [end(1)]}}.get(path, {})
        assert other.ask("POST", f"{me}/{path}", body).status == 404
    other.delete(me, 404)
    [run] = other.post(f"{its}/claim", {"pool": "default"})["runs"]
    stolen = worker.post(f"{me}/finish", {"ends": [end(run["run_id"])]})["ends"]
    assert stolen[0]["accepted"] is False  # held by somebody else
    assert both.ask("POST", f"{me}/claim", {"pool": "default"}).status == 403  # an admin is no worker


def test_one_slot_takes_turns_and_pools_are_counted_apart(both: Api) -> None:
    """Old and new work alternate in one slot, as in a worker of our own; with more, some are left to new work; and what
    is held of one pool takes no room in another."""
    both.post("/jobs", {**MINUTELY, "overlap": "allow"}, 201)
    both.post("/jobs", {**HELLO, "overlap": "allow"}, 201)
    both.post("/jobs/tick/backfill", {"from": "2027-01-15T07:00:00Z"})
    for _ in range(4):
        both.post("/jobs/tick/trigger", status=202)
    worker, me = joined(both, slots=1)
    lanes = []
    for _ in range(6):
        [run] = worker.post(f"{me}/claim", {"pool": "default", "room": 5})["runs"]
        assert worker.post(f"{me}/claim", {"pool": "default"})["runs"] == []
        worker.post(f"{me}/finish", {"ends": [end(run["run_id"])]})
        lanes.append(run["lane"])
    assert lanes == ["live", "catchup"] * 3
    wide = both.acting(both.key("wide", Role.WORKER, pools=("default", "reports")))
    its = f"/workers/{wide.post('/workers', {'name': 'w', 'pools': {'default': 4, 'reports': 1}}, 201)['worker_id']}"
    for most, expected in ((9, ["catchup", "catchup", "catchup", "live"]), (9, [])):
        got = wide.post(f"{its}/claim", {"pool": "default", "room": most})["runs"]
        assert sorted(run["lane"] for run in got) == expected
    [free] = [run["run_id"] for run in both.get("/runs", state="running")["runs"] if run["lane"] == "live"]
    wide.post(f"{its}/finish", {"ends": [end(free)]})
    assert wide.post(f"{its}/claim", {"pool": "default"})["runs"] == []  # the slot is for new work
    both.post("/jobs/hello/trigger", status=202)
    assert len(wide.post(f"{its}/claim", {"pool": "reports", "room": 2})["runs"]) == 1


def test_secrets_are_named_and_never_sent(both: Api) -> None:
    """A worker that does not put them in itself is not given such runs: their attempts fail, and say what to do."""
    env = {"run": {"command": ["x"], "env": {"TOKEN": "Bearer secret://shop-token"}}, "payload": {"pw": "secret://db"}}
    both.post("/jobs", {**HELLO, **env}, 201)
    both.post("/jobs", {**HELLO, "name": "plain"}, 201)
    worker, me = joined(both, "reports")
    for name in ("hello", "plain"):
        both.post(f"/jobs/{name}/trigger", status=202)
    ask = {"pool": "reports", "room": 4, "batch": "b1"}
    [run] = worker.post(f"{me}/claim", ask)["runs"]
    assert (run["job"], run["secrets"]) == ("plain", [])
    assert [each["job"] for each in worker.post(f"{me}/claim", ask)["runs"]] == ["plain"]  # the reply was lost, say
    [shown] = both.get("/jobs/hello/runs")["runs"]
    assert (shown["state"], shown["failures"]) == ("retrying", 1)
    [attempt] = both.get(f"/runs/{shown['run_id']}")["attempts"]
    assert attempt["error"]["code"] == "secret_missing"
    assert "names db, shop-token of the tenant default: let the worker put them in itself" in attempt["error"]["text"]
    both.do(both.floor.clock.advance(60_000))
    [run] = worker.post(f"{me}/claim", {"pool": "reports", "room": 4, "resolves_secrets": True})["runs"]
    assert (run["job"], run["attempt"], run["secrets"]) == ("hello", 2, ["db", "shop-token"])
    assert run["run"]["env"] == {"TOKEN": "Bearer secret://shop-token"}
    assert run["payload"] == {"pw": "secret://db"}


def end(run_id: int) -> dict[str, Any]:
    return {"run_id": run_id, "attempt": 1, "outcome": "succeeded", "duration_ms": 0}


def test_a_claim_that_arrives_twice_gets_nothing_the_second_time_if_it_got_nothing_the_first(both: Api) -> None:
    """The worker was told that there is nothing, and would not know of a run that a late copy of its request gets."""
    both.post("/jobs", HELLO, 201)
    worker, me = joined(both, "reports")
    ask = {"pool": "reports", "batch": "b1"}
    assert worker.post(f"{me}/claim", ask)["runs"] == []
    both.post("/jobs/hello/trigger", status=202)
    assert worker.post(f"{me}/claim", ask)["runs"] == []
    assert len(worker.post(f"{me}/claim", {**ask, "batch": "b2"})["runs"]) == 1


def test_a_worker_that_waits_gets_what_comes(api: Api) -> None:
    api.post("/jobs", HELLO, 201)
    worker, me = joined(api, "reports")
    asked = threaded(lambda: worker.post(f"{me}/claim", {"pool": "reports", "wait_s": 20}))
    api.post("/jobs/hello/trigger", status=202)
    assert len(asked()["runs"]) == 1


@pytest.mark.parametrize(("end", "batch"), [("revoked", None), ("expired", "b1")])
def test_a_key_that_ends_while_its_worker_waits_gets_nothing(api: Api, end: str, batch: str | None) -> None:
    """The run comes after the end of the key, and is still there for another worker."""
    api.post("/jobs", HELLO, 201)
    worker, me = joined(api, "reports", lasts_ms=1_000)
    waits = threading.Event()
    looks = api.store.queue.has_work

    async def look(pool: str) -> bool:
        waits.set()
        return await looks(pool)

    api.store.queue.has_work = look  # type: ignore[method-assign]
    asked = threaded(lambda: worker.post(f"{me}/claim", {"pool": "reports", "wait_s": 20, "batch": batch}, 401))
    assert waits.wait(30)
    if end == "revoked":
        ok(api.do(api.store.keys.revoke(str(worker._key).split("_")[1], "leaked", actor="test")))
    else:
        api.do(api.floor.clock.advance(1_000))
    run_id = api.post("/jobs/hello/trigger", status=202)["run_id"]
    assert end in asked()["detail"]
    other, she = joined(api, "reports", 3)
    [run] = other.post(f"{she}/claim", {"pool": "reports"})["runs"]
    assert (run["run_id"], run["attempt"]) == (run_id, 1)


def threaded(work: Any) -> Any:
    pool = ThreadPoolExecutor(1)
    found = pool.submit(work)
    pool.shutdown(wait=False)
    return lambda: found.result(60)


class Crowded(Limiter):
    """Whoever asks first is told to come back."""

    def take(self, who: str, per_minute: int | None, now_ms: int) -> Turn:
        is_first = not len(self)
        turn = super().take(who, per_minute, now_ms)
        return turn._replace(allowed=False, retry_after_ms=1) if is_first else turn


@pytest.mark.parametrize("example", ["worker.py", "worker.mjs"])
@pytest.mark.parametrize("end", ["idle", "busy"])
def test_the_examples_work(api: Api, example: str, end: str) -> None:
    """They come back after a 429, and leave on SIGTERM: at once while they wait, after the run while they have one."""
    program = sys.executable if example.endswith(".py") else shutil.which("node")
    assert program, "this test needs node: apt-get install nodejs"
    assert len((EXAMPLES / example).read_text().splitlines()) <= 90
    api.post("/jobs", HELLO, 201)
    key = api.key("example", Role.WORKER, pools=("reports",))
    if end == "idle":
        api.context.limiter = Crowded(600_000)
    gate = Gate(api) if end == "busy" else None
    process = subprocess.Popen(
        [program, EXAMPLES / example, "reports"],
        env={"PATH": os.environ["PATH"], "FLEETCRON_API_URL": api.url, "FLEETCRON_API_KEY": key},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "waits for work" in process.stdout.readline()
        run_id = api.post("/jobs/hello/trigger", status=202)["run_id"]
        if gate is not None:
            assert gate.printed.wait(30)
            process.terminate()
            assert gate.refused.wait(30)
            gate.open()
        # the live tail ends when the run is final
        assert [kind for kind, _, _ in events(api, f"/runs/{run_id}/log/stream", None)] == ["log", "end"]
        shown = api.get(f"/runs/{run_id}")
        assert (shown["state"], shown["attempts"][0]["result"]) == ("succeeded", {"greeted": "hello"})
        if end == "idle":
            process.terminate()
        assert process.wait(30) == 0
        assert api.do(api.store.workers.list()).workers == []
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


class Gate:
    """What a worker printed is kept waiting, so that it holds its run; and its first leave is heard of."""

    def __init__(self, api: Api) -> None:
        self.printed, self.refused = threading.Event(), threading.Event()
        self._api = api
        self._opened = asyncio.Event()
        self._append, self._leave = api.store.output.append, api.store.workers.leave
        api.store.output.append = self.append  # type: ignore[method-assign]
        api.store.workers.leave = self.leave  # type: ignore[method-assign]

    async def append(self, *given: Any) -> Any:
        self.printed.set()
        await self._opened.wait()
        return await self._append(*given)

    async def leave(self, worker_id: str) -> Any:
        left = await self._leave(worker_id)
        self.refused.set()
        return left

    def open(self) -> None:
        async def opened() -> None:
            self._opened.set()

        self._api.do(opened())
