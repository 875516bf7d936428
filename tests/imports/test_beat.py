"""Beat schedules of Celery: a live app in a process of its own, and source text that is only read."""

from datetime import UTC, datetime

import pytest
from celery.schedules import crontab as celery_crontab

from fleetcron.errors import DefinitionError
from fleetcron.imports.beat import FIELDS, add_beat
from fleetcron.imports.beat_source import read_beat_source
from fleetcron.imports.plan import Plan
from fleetcron.model.reading import read_definitions
from tests.imports.calendar_minutes import matching
from tests.imports.jobs import has, said, ticks

pytestmark = pytest.mark.xdist_group("minutes")  # one worker keeps the minutes of a year

SOURCE = """
from celery import Celery
from celery.schedules import crontab, schedule, solar
from datetime import timedelta

app = Celery("proj")
app.conf.timezone = "Europe/London"
MINUTE = 60
app.conf.beat_schedule = {
    "seconds": {"task": "proj.add", "schedule": 30.0, "args": (16, 16)},
    "sum": {"task": "proj.add", "schedule": 5 * MINUTE},
    "delta": {"task": "proj.add", "schedule": timedelta(hours=1)},
    "wrapped": {"task": "proj.add", "schedule": schedule(run_every=timedelta(minutes=2))},
    "monday": {"task": "proj.add", "schedule": crontab(hour=7, minute=30, day_of_week=1), "kwargs": {"x": "ü"},
               "options": {"queue": "slow", "expires": 60, "priority": 3}},
    "both": {"task": "proj.add", "schedule": crontab(0, 0, day_of_month="1-7", day_of_week="mon")},
    "sun": {"task": "proj.add", "schedule": solar("sunset", -37.8, 144.9)},
    "elsewhere": {"task": "proj.add", "schedule": crontab(minute=settings.MINUTE)},
    "fast": {"task": "proj.add", "schedule": 0.2},
    "no-task": {"schedule": 30},
}
"""


def imported(described: dict) -> Plan:
    plan = Plan()
    add_beat(plan, "proj.py", described, "proj")
    return plan


def test_source_is_read_and_not_run() -> None:
    plan = imported(read_beat_source(SOURCE, "proj.py"))
    documents = {job.name: job.document for job in plan.jobs}
    assert {name: each["schedule"] for name, each in documents.items()} == {
        "seconds": {"every": "30s"},
        "sum": {"every": "5m"},
        "delta": {"every": "1h"},
        "wrapped": {"every": "2m"},
        "monday": {"cron": "30 7 * * 1", "timezone": "Europe/London"},
        "both": {"cron": "0 0 1-7 * +1", "timezone": "Europe/London"},
    }
    assert documents["seconds"]["run"] == {"command": ["celery", "-A", "proj", "call", "proj.add", "--args=[16,16]"]}
    assert documents["monday"]["run"]["command"][5:] == ['--kwargs={"x":"ü"}', "--queue=slow", "--expires=60"]
    # what no worker has sent for a while is sent once, as beat does after a rest
    assert {name for name, each in documents.items() if each["overlap"] == "allow"} == {"seconds"}
    assert {each["overlap"] for each in documents.values()} == {"allow", "collapse"}
    texts = said(plan)
    assert has(texts, "priority")
    assert has(said(plan, "left_out"), "solar", "-37.8")
    assert has(said(plan, "left_out"), "settings.MINUTE", "not written out")
    assert has(said(plan, "left_out"), "shortest interval")
    assert has(said(plan, "left_out"), "no task")
    assert [each.origin.line for each in plan.findings if "settings" in each.text] == [18]
    assert len(read_definitions(plan.as_document()).jobs) == 6


@pytest.mark.parametrize(
    "text",
    [
        "CELERY_BEAT_SCHEDULE = {'a': {'task': 't', 'schedule': 60}}",
        "CELERYBEAT_SCHEDULE: dict = {'a': {'task': 't', 'schedule': 60}}",
        "TIMES = {'a': {'task': 't', 'schedule': 60}}\nbeat_schedule = TIMES",
        "def f(app):\n    app.conf.update(beat_schedule={'a': {'task': 't', 'schedule': 60}})",
    ],
)
def test_where_schedules_stand(text: str) -> None:
    assert [job.name for job in imported(read_beat_source(text, "x.py")).jobs] == ["a"]


@pytest.mark.parametrize("text", ["x = 1", "beat_schedule = load()", "def (", "\0", "(" * 5000])
def test_no_schedule(text: str) -> None:
    with pytest.raises(DefinitionError):
        read_beat_source(text, "x.py")


MORE = """
app.conf.beat_schedule = {
    "a": {"task": "old", "schedule": 60},
    "a": {"task": "new", "schedule": 60},
    "r": {"task": "t", "schedule": 3600, "relative": True},
}
app.conf.beat_schedule["b"] = {"task": "t", "schedule": 60}
app.conf.beat_schedule.update({"c": {"task": "t", "schedule": 60}}, d={"task": "t", "schedule": 60})
app.conf.beat_schedule |= {"e": {"task": "t", "schedule": schedule(60, relative=True)}}
app.conf.beat_schedule[NAME] = {"task": "t", "schedule": 60}
app.conf.beat_schedule.update(load())
app.conf.beat_schedule.pop("z")
print(app.conf.beat_schedule.keys())


@app.on_after_configure.connect
def more(sender, **kwargs):
    sender.add_periodic_task(10.0, add.s(1), name="ten")
"""


def test_what_is_put_in_beside_the_schedule() -> None:
    """It is read if it is written out, and said if not: nothing vanishes without a word."""
    plan = imported(read_beat_source(MORE, "proj.py"))
    tasks = {job.name: job.document["run"]["command"][4] for job in plan.jobs}
    assert tasks == {"a": "new", "r": "t", "b": "t", "c": "t", "d": "t", "e": "t"}
    left = {each.origin.line: str(each) for each in plan.findings if each.level == "left_out"}
    assert [*left] == [10, 11, 12, 18]
    assert "NAME" in left[10]
    assert "merged into the schedule is not written out" in left[11]
    assert "pop()" in left[12]
    assert "add_periodic_task()" in left[18]
    assert has(said(plan, "note"), "in line 3 does not count")
    assert sum("relative: beat keeps to the clock" in text for text in said(plan, "differs")) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(s):\n    s.add_periodic_task(1.0, t.s())", "add_periodic_task()"),
        ("beat_schedule = load()\nbeat_schedule['a'] = {'task': 't', 'schedule': 60}", "schedule is not written out"),
        ("beat_schedule = {'b': 1}\nbeat_schedule = {'a': {'task': 't', 'schedule': 60}}", "line 2 takes its place"),
        ("beat_schedule = {'a': {'task': 't', 'schedule': 60}}\ndel beat_schedule['a']", "is deleted, and imported"),
    ],
)
def test_what_only_the_running_app_knows_is_left_out(text: str, reason: str) -> None:
    plan = imported(read_beat_source(text, "x.py"))
    assert [job.name for job in plan.jobs] == (["a"] if "'a'" in text else [])
    assert has(said(plan, "left_out"), reason)


def test_source_does_nothing() -> None:
    text = "import os; os._exit(7)\nbeat_schedule = {'a': {'task': __import__('os').abort(), 'schedule': 9 ** 9 ** 9}}"
    plan = imported(read_beat_source(text, "x.py"))
    assert plan.jobs == []
    assert has(said(plan, "left_out"), "not written out")


CRONTABS = [
    {"minute": "30", "hour": "2"},
    {"minute": "0", "hour": "0", "day_of_month": "1-7", "day_of_week": "mon"},
    {"minute": "*/7", "hour": "1,5"},
    {"minute": "0", "hour": "22-3"},
    {"minute": "15", "hour": "*/5", "day_of_week": "fri-mon"},
    {"minute": "0", "hour": "6", "day_of_month": "*/10", "month_of_year": "*/4"},
    {"minute": "0", "hour": "12", "day_of_week": "1-5", "day_of_month": "13"},
]


def as_values(words: dict[str, str]) -> dict:
    """What the probe finds in a live crontab()."""
    live = celery_crontab(**words)
    written = {name: words.get(name, "*") for name in FIELDS}
    return {"kind": "crontab", "written": written} | {name: sorted(getattr(live, name)) for name in FIELDS}


@pytest.mark.parametrize("words", CRONTABS, ids=lambda words: " ".join(words.values()))
def test_a_year_of_ticks(words: dict[str, str]) -> None:
    """Next to every minute of the year, with the values that Celery itself reads; and the source reads alike."""
    live = celery_crontab(**words)
    entry = {"name": "a", "task": "t", "schedule": as_values(words)}
    plan = imported({"entries": [entry]})
    theirs = matching(
        "UTC",
        lambda at: (
            at.minute in live.minute
            and at.hour in live.hour
            and at.day in live.day_of_month
            and at.month in live.month_of_year
            and at.weekday in live.day_of_week
        ),
    )
    ours = ticks(plan.jobs[0])
    assert len(ours) > 3
    assert ours == list(theirs)
    given = ", ".join(f"{name}={word!r}" for name, word in words.items())
    source = f"beat_schedule = {{'a': {{'task': 't', 'schedule': crontab({given})}}}}"
    read = imported(read_beat_source(source, "x.py")).jobs[0].document
    assert read["schedule"] == plan.jobs[0].document["schedule"]


@pytest.mark.parametrize("words", CRONTABS, ids=lambda words: " ".join(words.values()))
def test_beat_itself_goes_from_tick_to_tick_alike(words: dict[str, str]) -> None:
    plan = imported({"entries": [{"name": "a", "task": "t", "schedule": as_values(words)}]})
    for last, following in list(zip(ours := ticks(plan.jobs[0]), ours[1:], strict=False))[:40]:
        live = celery_crontab(**words, nowfun=lambda last=last: last)
        began, delta, _ = live.remaining_delta(last, tz=UTC)
        assert began + delta == following


def test_the_slow_way_is_in_utc() -> None:
    assert next(matching("UTC", lambda at: at.minute == 0)) == datetime(2027, 1, 1, tzinfo=UTC)
