"""Job stores of APScheduler 3: pickles that are read and never run, triggers next to APScheduler's own ticks."""

import base64
import json
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.calendarinterval import CalendarIntervalTrigger
from apscheduler.triggers.combining import AndTrigger, OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron.errors import DefinitionError
from fleetcron.imports.apscheduler import add_export, add_row
from fleetcron.imports.pickles import BadPickle, Inert, read_pickle
from fleetcron.imports.plan import Plan
from fleetcron.model.reading import read_definitions
from tests.imports.calendar_minutes import YEAR
from tests.imports.jobs import has, said, ticks


def state_of(trigger: Any, **more: Any) -> bytes:
    state = {
        "version": 1, "id": "a", "func": "os:getcwd", "trigger": trigger, "executor": "default", "args": (),
        "kwargs": {}, "name": "getcwd", "misfire_grace_time": 1, "coalesce": True, "max_instances": 1,
        "next_run_time": datetime(2027, 1, 1, tzinfo=UTC),
    }  # fmt: skip
    return pickle.dumps(state | more, pickle.HIGHEST_PROTOCOL)


def imported(trigger: Any, **more: Any) -> Plan:
    plan = Plan()
    add_row(plan, "jobs.db", "a", state_of(trigger, **more))
    return plan


def theirs(trigger: Any) -> list[datetime]:
    found, last, now = [], None, YEAR[0]
    while (at := trigger.get_next_fire_time(last, now)) is not None and at < YEAR[1]:
        found.append(at.astimezone(UTC))
        last, now = at, at + timedelta(microseconds=1)
    return found


CRONS = [
    {"hour": 5, "minute": 30},
    {"day_of_week": "0", "hour": 6},
    {"day_of_week": "mon-fri", "hour": "8-18/2"},
    {"day": "13", "day_of_week": "fri", "hour": 7},
    {"day": "1-7", "day_of_week": "6", "hour": 7},
    {"day": "3rd fri, last, 5", "day_of_week": "0-4", "hour": 9},
    {"day": "last sun", "hour": 12},
    {"day": "last", "day_of_week": "sat,sun", "hour": 12},
    {"day": "*/10", "hour": 4},
    {"month": "jan-mar,12", "day": "5/7", "hour": 4},
    {"month": "*/5", "hour": 4},
    {"day": 1, "hour": 10, "minute": 0, "second": "*/20"},
    {"day": "5th mon", "hour": 6},
]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("fields", CRONS, ids=lambda fields: " ".join(map(str, fields.values())))
def test_a_year_of_ticks(fields: dict[str, Any], zone: str) -> None:
    """Hours that no clock change touches: there APScheduler has faults of its own, and ours are the policies."""
    trigger = CronTrigger(**fields, timezone=zone)
    plan = imported(trigger)
    ours = ticks(plan.jobs[0])
    assert ours
    assert ours == theirs(trigger)


def test_a_weekday_is_translated_and_said() -> None:
    plan = imported(CronTrigger(day_of_week="0", hour=6, timezone="UTC"))
    assert plan.jobs[0].document["schedule"] == {"cron": "0 6 * * 1"}
    assert has(said(plan, "note"), "0 is Monday")
    both = imported(CronTrigger(day=13, day_of_week=4, hour=6, timezone="UTC"))
    assert both.jobs[0].document["schedule"] == {"cron": "0 6 13 * +5"}
    assert has(said(both, "note"), "both day fields must match")


def test_intervals_keep_their_anchor_and_bounds() -> None:
    start, end = datetime(2027, 2, 1, 0, 7, tzinfo=UTC), datetime(2027, 3, 1, 0, 7, tzinfo=UTC)
    trigger = IntervalTrigger(hours=7, start_date=start, end_date=end, timezone="UTC")
    plan = imported(trigger)
    assert ticks(plan.jobs[0]) == theirs(trigger)
    assert ticks(plan.jobs[0])[0] == start
    assert ticks(plan.jobs[0])[-1] == end, "their end is a tick too"


def test_dates_and_either() -> None:
    plan = imported(DateTrigger("2027-07-01 09:30:00", timezone="America/New_York"))
    assert plan.jobs[0].document["schedule"] == {"at": "2027-07-01T13:30:00Z"}
    parts = [CronTrigger(hour=hour, minute=5, timezone="Europe/Berlin") for hour in (9, 17)]
    either = OrTrigger(parts)
    assert ticks(imported(either).jobs[0]) == theirs(either)


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [
        (AndTrigger([CronTrigger(hour=1), CronTrigger(hour="1,2")]), "AndTrigger"),
        (CalendarIntervalTrigger(months=1), "CalendarIntervalTrigger"),
        (CronTrigger(week=4, timezone="UTC"), "weeks"),
        (CronTrigger(year=2030, timezone="UTC"), "years"),
        (IntervalTrigger(hours=1, timezone="UTC"), None),
        (None, "NoneType"),
    ],
)
def test_what_has_no_counterpart(trigger: Any, reason: str | None) -> None:
    plan = imported(trigger)
    assert bool(plan.jobs) == (reason is None)
    assert reason is None or reason in said(plan, "left_out")[0]


def test_policies_and_arguments() -> None:
    trigger = CronTrigger(hour=5, jitter=20, timezone="UTC")
    plan = imported(
        trigger, args=(1, "x"), kwargs={"k": [None]}, max_instances=3, misfire_grace_time=600, coalesce=False
    )
    document = plan.jobs[0].document
    assert document["run"]["command"][3:] == ["os:getcwd", '[1, "x"]', '{"k": [null]}']
    assert document["overlap"] == {"policy": "allow", "max_running": 3}
    assert document["misfire"] == {"policy": "all", "window": "600s"}
    assert document["jitter"] == "20s"
    assert document["start_deadline"] == "620s", "as late as there, and its own jitter is no lateness"
    assert imported(CronTrigger(hour=5)).jobs[0].document["start_deadline"] == "60s"
    assert "start_deadline" not in imported(trigger, misfire_grace_time=None).jobs[0].document
    assert has(said(plan, "differs"), "goes both ways")
    assert imported(trigger).jobs[0].document["run"] == {"python": "os:getcwd"}
    assert has(said(imported(trigger, args=(object(),)), "left_out"), "JSON")
    assert has(said(imported(trigger, next_run_time=None), "left_out"), "paused")


def test_the_command_calls_the_function(tmp_path: Path) -> None:
    plan = imported(CronTrigger(hour=5, timezone="UTC"), func="os:path.join", args=("a",), kwargs={})
    (tmp_path / "told.py").write_text("def tell(*args, **named):\n    print(args, named)\n")
    called = imported(CronTrigger(hour=5, timezone="UTC"), func="told:tell", args=(1, "ü"), kwargs={"k": [2]})
    for each in (plan, called):
        argv = [sys.executable, *each.jobs[0].document["run"]["command"][1:]]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "(1, 'ü') {'k': [2]}\n"


def test_a_store_and_an_export_say_the_same(tmp_path: Path) -> None:
    store = SQLAlchemyJobStore(f"sqlite:///{tmp_path}/jobs.db")
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone="Europe/Berlin")
    scheduler.start(paused=True)
    try:
        scheduler.add_job("os:getcwd", "cron", id="b", day="3rd fri, last, 5", day_of_week="0-4", hour="*/2")
        scheduler.add_job("time:sleep", "interval", id="a", args=[1], hours=2, start_date="2027-01-01")
        scheduler.add_job("os:getcwd", "date", id="c", run_date="2027-03-28 02:30:00")
        scheduler.export_jobs(str(tmp_path / "jobs.json"))
        rows = [(job.id, pickle.dumps(job.__getstate__(), 5)) for job in store.get_all_jobs()]
    finally:
        scheduler.shutdown()
        store.shutdown()
    one, other = Plan(), Plan()
    for job_id, state in sorted(rows):
        add_row(one, "x", job_id, state)
    add_export(other, "x", (tmp_path / "jobs.json").read_text())
    assert one.as_document() == other.as_document()
    assert [job.name for job in one.jobs] == ["a", "b", "c"]
    assert len(read_definitions(one.as_document()).jobs) == 3


# --- pickles ----------------------------------------------------------------------------------------------------------


class Bomb:
    """What a hostile row does: loading it runs a command."""

    def __init__(self, function: Any, *given: Any) -> None:
        self._what = function, given

    def __reduce__(self) -> Any:
        return self._what


def test_nothing_of_a_pickle_runs(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for bomb in (
        Bomb(os.system, f"touch {mark}"),
        Bomb(eval, f"open({str(mark)!r}, 'w')"),
        Bomb(exec, "raise SystemExit"),
    ):
        data = pickle.dumps({"version": 1, "trigger": bomb, "args": [bomb], "next_run_time": bomb})
        plan = Plan()
        add_row(plan, "x", "a", data)
        assert plan.jobs == []
        assert isinstance(read_pickle(data)["trigger"], Inert)
        packed = {"__apscheduler_pickle__": base64.b64encode(pickle.dumps(bomb)).decode()}
        add_export(plan, "x", json.dumps({"version": 1, "jobs": [{"id": "a", "trigger": packed, "next_run_time": 1}]}))
        assert plan.jobs == []
    assert not mark.exists()
    pickle.loads(pickle.dumps(Bomb(os.system, f"touch {mark}")))
    assert mark.exists(), "the bomb is one"


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80\x05", b"cos\nsystem\n", b"r\xff\xff\xff\xff.", b"\x96" + b"\xff" * 8 + b".", b"x" * 2_000_000,
     b"(I1\nI2\nt\x81.", b"Pabc\n.", b"\x80\x05]\x94(h\x00e."],
)  # fmt: skip
def test_bytes_that_are_no_job(data: bytes) -> None:
    plan = Plan()
    add_row(plan, "x", "a", data)
    assert plan.jobs == []
    assert len(said(plan, "left_out")) == 1


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 500))
def test_any_bytes(noise: bytes, at: int) -> None:
    whole = state_of(CronTrigger(hour=5, timezone="Europe/Berlin"))
    for data in (noise, whole[:at] + noise + whole[at + len(noise) :]):
        with suppress(BadPickle):
            read_pickle(data)
        plan = Plan()
        add_row(plan, "x", "a", data)
        assert len(plan.jobs) + len(plan.findings) > 0


def test_zones_of_every_kind() -> None:
    fixed = timezone(timedelta(hours=2))
    assert has(said(imported(CronTrigger(hour=5, timezone=fixed)), "left_out"), "has no name")
    assert "timezone" not in imported(CronTrigger(hour=5, timezone=UTC)).jobs[0].document["schedule"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2, "jobs": []}', "[" * 100_000])
def test_no_export(text: str) -> None:
    with pytest.raises(DefinitionError):
        add_export(Plan(), "x.json", text)
