"""`fleetcron simulate --past`: under the same policies the same happens again."""

import time
from dataclasses import replace
from typing import Any

import pytest

from fleetcron.cli.simulated_past import played
from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Outcome, Snoozed, Succeeded, TimedOut
from fleetcron.model.reading import read_job
from fleetcron.model.run import Run, RunLine
from fleetcron.model.states import RunState
from fleetcron.simulate.durations import Durations, Lasting, Stopping
from fleetcron.simulate.outlook import outlook
from fleetcron.simulate.scenario import Scenario, rehearse
from fleetcron.store.attempts import PastAttempt
from fleetcron.times.instants import from_ms, iso
from tests.cli.folder import Folder

APP = """
import asyncio
from fleetcron import Fleetcron
from fleetcron.executors.context import GiveUp
app = Fleetcron()
at = dict(every="1h", anchor="%s")

@app.job(**at, retry={"retry_on": ["ConnectionError"], "backoff": ["1s"], "jitter": 0})
def passing(ctx):
    if ctx.attempt == 1:
        raise ConnectionError("not yet")

@app.job(**at, retry={"retry_on": ["ConnectionError"], "backoff": ["1s"], "jitter": 0})
def other(ctx):
    raise OSError("never")

@app.job(**at, retry={"backoff": ["1s"], "jitter": 0})
def hopeless(ctx):
    raise GiveUp("no use")

@app.job(**at, retry={"give_up_on": ["ValueError"], "backoff": ["1s"], "jitter": 0})
def wrong(ctx):
    raise ValueError("wrong")

@app.job(**at, retry={"max_attempts": 2, "backoff": ["1s"], "jitter": 0})
def failing(ctx):
    raise OSError("never")

@app.job(**at, timeout="1s", retry={"max_attempts": 2, "backoff": ["1s"], "jitter": 0})
async def slow(ctx):
    await asyncio.sleep(60)

@app.job(**at)
def later(ctx):
    if ctx.attempt == 1:
        ctx.snooze(1)

@app.job(**at)
def fine(ctx):
    pass
"""
HAPPENED = {
    "passing": ("succeeded", 2), "other": ("dead", 1), "hopeless": ("dead", 1), "wrong": ("dead", 1),
    "failing": ("dead", 2), "slow": ("dead", 2), "later": ("succeeded", 2), "fine": ("succeeded", 1),
}  # fmt: skip


def test_a_history_of_the_real_engine_is_played_again(quick: Folder) -> None:
    """One tick of each job, on SQLite and in real time. And with another rule it ends otherwise."""
    at_s = int(time.time()) + 12  # a busy machine takes so long to start a node
    tick = iso(from_ms(at_s * 1000))
    quick.write("shop.py", APP % tick)
    with quick.serving("--app", "shop:app") as node:
        node.until("Look at it")
        happened: dict[str, Any] = {}
        patience = time.monotonic() + 60
        while happened != HAPPENED or time.time() < at_s + 5:  # the past ends now, which is a whole second
            assert time.monotonic() < patience, happened
            runs = [each for each in quick.json("runs")["runs"] if each["scheduled_for"] == tick]
            happened = {each["name"]: (each["state"], each["attempt"]) for each in runs}
        node.stop()
    change = ("--set", "wrong.retry.give_up_on=[]", "--set", "wrong.retry.max_attempts=3", "--compare")
    said = quick.json("simulate", "--past", "--from", tick, *change)
    as_it_is, changed = ({each["job"]: each for each in one["jobs"]} for one in said["simulations"])
    assert {
        job: (state, as_it_is[f"default/{job}"]["attempts"])
        for job in HAPPENED
        for state in ("succeeded", "dead", "cancelled", "unfinished")
        if as_it_is[f"default/{job}"][state]
    } == HAPPENED
    assert changed["default/wrong"]["attempts"] > 1
    assert changed["default/hopeless"] == as_it_is["default/hopeless"]


STANDING = """
jobs:
  - {name: interval, schedule: {every: 7m}, run: {command: ["true"]}}
  - {name: counted, schedule: {every: 11m}, max_ticks: 17, run: {command: ["true"]}}
  - {name: last, schedule: {every: 1h}, max_ticks: 2, run: {command: ["true"]}}
  - {name: hourly, schedule: {cron: "0 * * * *"}, run: {command: ["true"]}, depends_on: [paused]}
  - {name: paused, schedule: {every: 30m}, run: {command: ["true"]}}
"""


@pytest.mark.parametrize(
    "period", [("--past",), ("--past", "--from", "1h"), ("--from", "1h", "--for", "3h"), ("--for", "3h")]
)
def test_the_same_file_gives_the_same_figures(quick: Folder, period: tuple[str, ...]) -> None:
    """Its jobs go on from where those of the database stand: they were made two hours and a half ago."""
    quick.write("jobs.yaml", STANDING)
    quick("apply", "-f", "jobs.yaml", shift_s=-9_000)
    for job in ("interval", "counted", "last"):  # so that somebody counts
        quick("jobs", "pause", job)
        quick("jobs", "resume", job)
    quick("jobs", "pause", "paused")
    one, other = quick.json("simulate", *period, "--against", "jobs.yaml")["simulations"]
    for each in (one, other):
        each["jobs"].sort(key=lambda line: line["job"])
    assert {**other, "title": ""} == {**one, "title": ""}
    assert {each["job"] for each in one["jobs"]} == {f"default/{job}" for job in ("interval", "counted", "hourly")}
    more = '  - {name: new, schedule: {every: 20m}, run: {command: ["true"]}}\n'
    quick.write("jobs.yaml", STANDING.replace("every: 30m", "every: 45m") + more)
    one, other = quick.json("simulate", *period, "--against", "jobs.yaml")["simulations"]
    assert {"default/new"} == {each["job"] for each in other["jobs"]} - {each["job"] for each in one["jobs"]}


def ticks_of(quick: Folder, *given: str) -> int:
    return int(quick.json("simulate", *given)["simulations"][0]["total"]["ticks"])


def test_used_ticks_are_those_before_the_period(quick: Folder) -> None:
    """Made four hours and five minutes ago: 24 ticks of 33 are used by now, and 30 in an hour."""
    quick.write("jobs.yaml", "jobs: [{name: a, schedule: {every: 10m}, max_ticks: 33, run: {command: ['true']}}]")
    quick("apply", "-f", "jobs.yaml", shift_s=-14_700)

    def left() -> list[int]:
        later = iso(from_ms(int(time.time() + 3600) * 1000))
        return [
            ticks_of(quick, "--past", "--from", "3h"),
            ticks_of(quick, "--past", "--from", "1d"),
            ticks_of(quick),
            ticks_of(quick, "--from", later),
        ]

    assert left() == [18, 24, 9, 3]  # nobody has looked at it since
    quick("jobs", "pause", "a")  # counts what was up to now
    quick("jobs", "resume", "a")
    assert left() == [18, 24, 9, 3]
    at = iso(from_ms(int(time.time() + 7200) * 1000))
    told = quick("simulate", "--from", at, code=2).stderr  # all are used by then
    assert "there is no active job to simulate" in told
    assert "have ended by then" in told


def test_no_tick_of_the_past_is_older_than_its_job(quick: Folder) -> None:
    quick.write("jobs.yaml", "jobs: [{name: a, schedule: {cron: '* * * * * *'}, run: {command: ['true']}}]")
    quick("apply", "-f", "jobs.yaml", shift_s=-60)
    again = ("simulate", "--past", "--against", "jobs.yaml", "--default-duration", "10ms")
    found = [each["total"]["ticks"] for each in quick.json(*again)["simulations"]]
    assert found == pytest.approx([60, 60], abs=3)
    begins = iso(from_ms(int(time.time() - 30) * 1000))
    assert ticks_of(quick, "--past", "--from", begins) == pytest.approx(30, abs=3)


START_MS = 1_800_000_000_000  # a full hour
HOUR_MS = 3_600_000


def again(*past: Lasting, outages: tuple[tuple[int, int], ...] = (), **fields: Any) -> tuple[dict[str, int], int]:
    """What becomes of one tick with this past, and how many attempts it has."""
    job = read_job({"name": "a", "schedule": {"cron": "0 * * * *"}, "run": {"command": ["true"]}, **fields})
    durations = Durations(past={("default/a", START_MS): past})
    facts = rehearse(Scenario([job], START_MS, START_MS + HOUR_MS, outages=outages, durations=durations))
    figures = outlook(facts).by_job["default/a"]
    return {state: number for state, number in figures.answers.items() if number}, figures.attempts


def failed(code: str) -> Lasting:
    return Lasting(100, Failed(Fault(code, "as it was")))


@pytest.mark.parametrize(
    ("past", "retry", "state", "attempts"),
    [
        ([failed("http_404")], {}, "dead", 1),
        ([failed("http_404"), Lasting(5)], {"retry_on": ["http_404"]}, "succeeded", 2),
        ([failed("http_503"), Lasting(5)], {"retry_on": ["http_503"]}, "succeeded", 2),
        ([failed("shop.Broken")], {"give_up_on": ["Broken"]}, "dead", 1),
        ([failed("bad_payload")], {}, "dead", 1),
        ([failed("exit_1")], {"max_attempts": 3}, "dead", 3),
        ([Lasting(100, TimedOut(Fault("timeout"))), Lasting(5)], {}, "succeeded", 2),
        ([Lasting(100, TimedOut(Fault("timeout")))], {"give_up_on": ["timeout"]}, "dead", 1),
        ([Lasting(100, Lost(Fault("lost"))), Lasting(5)], {"max_attempts": 1}, "succeeded", 2),
        ([Lasting(100, Lost(Fault("lost")))], {"max_losses": 3}, "dead", 3),
        ([Lasting(100, Snoozed(60)), Lasting(5)], {"max_attempts": 1}, "succeeded", 2),
        # an older release made it dead after five stops; going on as the last attempt, it would be stopped for ever
        ([Lasting(0, Lost(Fault("worker_stopped")))] * 5, {"max_losses": 3}, "succeeded", 6),
        ([Lasting(100, Cancelled("by hand"))], {}, "cancelled", 1),
        ([Lasting(HOUR_MS, None)], {}, "unfinished", 1),
    ],
)
def test_every_end_is_judged_by_the_rules_of_the_job(
    past: list[Lasting], retry: dict[str, Any], state: str, attempts: int
) -> None:
    retry = {"backoff": ["10s"], **retry}
    assert again(*past, retry=retry, timeout="2h") == ({state: 1}, attempts)


def test_a_timeout_comes_first_and_so_does_an_outage() -> None:
    assert again(failed("http_404"), timeout="1s", retry={"max_attempts": 1}) == ({"dead": 1}, 1)
    long = Lasting(600_000, Failed(Fault("http_404")))
    assert again(long, timeout="1m", retry={"max_attempts": 2, "backoff": ["10s"]}) == ({"dead": 1}, 2)
    lost = Lasting(1_200_000, Lost(Fault("lost")))
    outage = (START_MS + 300_000, START_MS + 900_000)
    assert again(lost, Lasting(5), outages=(outage,)) == ({"succeeded": 1}, 2)


RUN = Run(1, "job", 0, 0, 0, 9_000, None, 1, 1, 1, "tick", "live", RunState.SUCCEEDED, 0, 1)
LINE = RunLine("default", "a", "default", RUN)


def attempt(outcome: str | None, code: str = "", text: str = "", *, begun: int = 0, ended: int = 1_000) -> PastAttempt:
    fault = Fault(code, text) if code else None
    return PastAttempt(1, "n", begun, None if outcome is None else ended, outcome, fault)


@pytest.mark.parametrize(
    ("outcome", "fault", "ms", "plays"),
    [
        ("succeeded", (), 1_000, Succeeded()),
        ("failed", ("http_503", "busy"), 1_000, Failed(Fault("http_503", "busy"))),
        ("timed_out", ("timeout", ""), 1_000, TimedOut(Fault("timeout", ""))),
        ("lost", ("lost", "it vanished"), 900, Lost(Fault("lost", "it vanished"))),
        ("cancelled", ("cancelled", "by hand"), 1_000, Cancelled("by hand")),
        ("cancelled", ("cancelled", "cancel_previous: run 7 takes its place"), 1_000, None),
        ("snoozed", (), 1_000, Snoozed(60)),
        (None, (), 8_000, None),
    ],
)
def test_how_an_attempt_that_was_is_played(
    outcome: str | None, fault: tuple[str, ...], ms: int, plays: Outcome | None
) -> None:
    """What runs goes on until the end of the period, here at 8 s; a lost one was lost within its timeout of 1 s."""
    assert played(LINE, [attempt(outcome, *fault)], 8_000, 1_000) == [Lasting(ms, plays)]


def test_a_snooze_was_as_long_as_until_the_next_attempt() -> None:
    attempts = [attempt("snoozed"), attempt("snoozed", begun=5_000, ended=6_000)]
    waits = replace(LINE, run=replace(RUN, state=RunState.RETRYING, finished_ms=None), next_ms=36_000)
    assert played(waits, attempts, 8_000, None) == [Lasting(1_000, Snoozed(4)), Lasting(1_000, Snoozed(30))]


def test_who_was_stopped_by_people_between_two_attempts_is_stopped_again() -> None:
    def line(reason: str) -> RunLine:
        return replace(LINE, run=replace(RUN, state=RunState.CANCELLED, reason=reason))

    attempts = [attempt("failed", "exit_1")]
    stopped = Lasting(1_000, Cancelled("cancelled: enough"))
    assert played(line("cancelled: enough"), attempts, 8_000, None) == [stopped]
    by_overlap = played(line("cancel_previous: run 7 takes its place"), attempts, 8_000, None)
    assert by_overlap == [Lasting(1_000, Failed(Fault("exit_1")))]


def test_who_was_asked_to_stop_takes_as_long_as_then() -> None:
    """Asked at 400 by the next tick; and one that has not stopped when the period ends, or was never asked in it."""
    replaced = attempt("cancelled", "cancelled", "cancel_previous: run 7 takes its place")
    assert played(LINE, [replaced], 8_000, None, 400) == [Lasting(1_000, None, Stopping(600, 1_000))]
    assert played(LINE, [replaced], 8_000, None, 3_000) == [Lasting(1_000, None, Stopping(0, 1_000))]
    [goes_on] = played(LINE, [attempt(None)], 8_000, None, 400)
    assert goes_on.stopping is not None
    assert goes_on.stopping.by_ms > 8_000
    assert played(LINE, [replaced], 8_000, None) == [Lasting(1_000, None)]


@pytest.mark.parametrize(
    ("stopping", "began_s"),
    [
        (None, [0, 60, 120]),
        (Stopping(0, 60_000), [0, 60, 120]),
        (Stopping(30_000, 90_000), [0, 90, 120]),
        (Stopping(45_000, 90_000), [0, 90, 120]),  # it was asked later then: the next one had no slot before
        (Stopping(90_000, 150_000), [0, 150, 180]),  # the tick between has given way by then
    ],
)
def test_the_next_tick_begins_when_the_one_before_has_stopped(stopping: Stopping | None, began_s: list[int]) -> None:
    """Other ticks take ten seconds."""
    minutely = {"name": "a", "schedule": {"cron": "* * * * *"}, "run": {"command": ["true"]}}
    job = read_job({**minutely, "overlap": "cancel_previous"})
    after = [Lasting(60_000, None, stopping)]
    durations = Durations(past={("default/a", START_MS): after}, default_ms=10_000)
    facts = rehearse(Scenario([job], START_MS, START_MS + 200_000, durations=durations))
    begun = [work.from_ms - START_MS for run in facts.runs for work in run.works]
    assert [round(ms / 1000) for ms in begun][:3] == began_s


LASTING = """
import time
from fleetcron import Fleetcron
app = Fleetcron()

@app.job(every="2s", overlap="cancel_previous")
def deaf(ctx):
    time.sleep(3)
"""


def test_a_handler_that_is_deaf_is_deaf_again(quick: Folder) -> None:
    """It never looks whether it was asked to stop, so that the next tick begins when it is over: two of three begin."""
    quick.write("shop.py", LASTING)
    with quick.serving("--app", "shop:app") as node:
        node.until("Look at it")
        begun: list[Any] = []
        while len(begun) < 6:
            begun = [each for each in quick.json("runs")["runs"] if each["duration_ms"] and each["attempt"]]
        node.stop()
    first, last = begun[-1]["scheduled_for"], begun[0]["scheduled_for"]
    [found] = quick.json("simulate", "--past", "--from", first, "--to", last)["simulations"]
    assert found["total"]["attempts"] == len(begun) - 1
    assert found["total"]["late_ms"]["max"] == pytest.approx(max(each["delay_ms"] for each in begun[1:]), abs=300)
