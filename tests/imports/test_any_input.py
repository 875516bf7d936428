"""Whatever is in a file, an import ends with a plan or with an error of ours, and every job of a plan is one."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron.errors import DefinitionError, ScheduleError
from fleetcron.imports.apscheduler import add_export
from fleetcron.imports.beat import FIELDS, add_beat
from fleetcron.imports.beat_source import read_beat_source
from fleetcron.imports.cronjobs import add_manifests
from fleetcron.imports.plan import Plan
from fleetcron.model.reading import read_definitions
from fleetcron.model.source import read_yaml
from tests.imports.jobs import crontab
from tests.imports.test_beat import SOURCE
from tests.imports.test_cronjobs import FULL

FIELD = st.sampled_from(
    ["*", "*/5", "0", "59", "1-5", "mon", "7", "~", "5~9", "22-3", "5/15", "x", "*,1", "1,2", "jan", "31"]
)
WHEN = st.one_of(
    st.lists(FIELD, min_size=4, max_size=6).map(" ".join),
    st.sampled_from(["@daily", "@reboot", "@x", "A=1", "'B' = 'x", "PATH=/x", "SHELL=/bin/zsh", "CRON_TZ=UTC", "#"]),
)
COMMAND = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20)
LINES = st.lists(st.tuples(WHEN, COMMAND).map(" ".join), max_size=6).map("\n".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def check(plan: Plan) -> None:
    assert len(read_definitions(plan.as_document()).jobs) == len(plan.jobs)


@settings(max_examples=150, deadline=None)
@given(LINES | st.text(max_size=80), st.booleans())
def test_any_crontab(text: str, system: bool) -> None:
    check(crontab(text, system=system, timezone="Europe/Berlin"))


def changed(whole: Any, path: list[int], value: Any) -> Any:
    """The same with `value` at a place that the numbers lead to."""
    if not path or not isinstance(whole, dict | list) or not whole:
        return value
    keys = list(whole) if isinstance(whole, dict) else list(range(len(whole)))
    key = keys[path[0] % len(keys)]
    inner = changed(whole[key], path[1:], value)
    if isinstance(whole, dict):
        return {**whole, key: inner}
    return [inner if at == key else each for at, each in enumerate(whole)]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 20), max_size=9), JSON)
def test_any_manifest(path: list[int], value: Any) -> None:
    plan = Plan()
    try:
        add_manifests(plan, "k.json", json.dumps(changed(read_yaml(FULL, "x"), path, value)))
    except DefinitionError:
        return
    check(plan)


EXPORT = {
    "version": 1,
    "jobs": [
        {
            "id": "a", "func": "m:f", "args": [1], "kwargs": {"a": 1}, "max_instances": 2, "misfire_grace_time": 70,
            "coalesce": True, "executor": "default", "name": "n",
            "next_run_time": "2027-01-01T00:00:00+00:00",
            "trigger": {
                "__apscheduler_class__": kind,
                "__apscheduler_state__": {
                    "interval": 60, "start_date": "2027-01-01T00:00:00+00:00", "end_date": None, "jitter": 3,
                    "timezone": "Europe/Berlin", "run_date": "2027-01-01T00:00:00+00:00",
                    "triggers": [["m:IntervalTrigger", {"interval": 60, "timezone": "UTC"}]],
                    "fields": [
                        {"__apscheduler_class__": "f:F", "__apscheduler_state__": {"name": name, "expressions": [
                            {"__apscheduler_class__": "e:AllExpression", "__apscheduler_state__": {"step": None}}]}}
                        for name in ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second")
                    ],
                },
            },
        }
        for kind in ("t:CronTrigger", "t:IntervalTrigger", "t:DateTrigger", "t:OrTrigger")
    ],
}  # fmt: skip


def test_the_export_is_one() -> None:
    plan = Plan()
    add_export(plan, "e.json", json.dumps(EXPORT))
    assert len(plan.jobs) == 4


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 20), max_size=9), JSON)
def test_any_export(path: list[int], value: Any) -> None:
    plan = Plan()
    try:
        add_export(plan, "e.json", json.dumps(changed(EXPORT, path, value)))
    except DefinitionError:
        return
    check(plan)


LIVE = {
    "timezone": "Europe/Berlin",
    "entries": [
        {"name": "a", "task": "t", "args": [1], "kwargs": {"k": 1}, "options": {"queue": "q"}, "schedule": schedule}
        for schedule in (
            {"kind": "interval", "seconds": 30.0},
            {"kind": "crontab", "written": dict.fromkeys(FIELDS, "*"), **{name: [1, 2] for name in FIELDS}},
            {"kind": "solar", "event": "x"},
        )
    ],
}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 700), st.text(max_size=12))
def test_any_source(at: int, noise: str) -> None:
    text = SOURCE[:at] + noise + SOURCE[at + len(noise) :]
    plan = Plan()
    try:
        add_beat(plan, "x.py", read_beat_source(text, "x.py"), "proj")
    except (DefinitionError, ScheduleError):
        return
    check(plan)


def test_any_description_of_ours() -> None:
    """The probe is ours, and what it says has this shape."""
    plan = Plan()
    add_beat(plan, "proj:app", LIVE, "proj")
    assert len(plan.jobs) == 2
