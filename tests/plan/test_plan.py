"""`fleetcron plan`: what it shows, that it writes nothing, and the exit codes that scripts tell apart."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetcron import Every
from fleetcron.applying.firing import Side, compared, firing
from fleetcron.testing import world
from fleetcron.times import zones
from fleetcron.times.instants import from_ms
from tests.cli.conftest import EXAMPLES
from tests.plan.conftest import Moments

BEFORE, NOW = "2027-01-10T12:00Z", "2027-01-13T02:30Z"
NIGHTLY = 'jobs: [{name: nightly, schedule: {cron: "%s", timezone: "%s"}, run: {command: [x]}}]\n'


def nightly(moments: Moments, cron: str, zone: str = "UTC") -> None:
    moments.write("jobs.yaml", NIGHTLY % (cron, zone))


def content(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def test_nothing_to_do_is_0_and_changes_are_2(moments: Moments) -> None:
    nightly(moments, "0 2 * * *")
    assert moments.at(BEFORE, "plan", "-f", "jobs.yaml", code=2).stdout.splitlines() == [
        "+ default/nightly   0 2 * * * UTC",
        "    ticks until 2027-04-10: 90 appear",
        "      + 2027-01-11 02:00Z, 2027-01-12 02:00Z, 2027-01-13 02:00Z, … and 87 more",
        "1 job: 1 created.",
        "Nothing was written.",
    ]
    assert [path.name for path in moments.path.iterdir()] == ["jobs.yaml"]
    moments.at(BEFORE, "apply", "-f", "jobs.yaml")
    before = content(moments.path)
    assert moments.at(NOW, "plan", "jobs.yaml").stdout.splitlines() == ["1 job: 1 unchanged.", "Nothing to do."]
    assert moments.json_at(NOW, "plan", "jobs.yaml")["jobs"] == []
    nightly(moments, "0 4 * * *")
    moments.at(NOW, "plan", "jobs.yaml", code=2)
    del before["jobs.yaml"]
    assert content(moments.path).items() > before.items()


def test_a_change_that_fires_twice_today_is_told_with_a_better_moment(moments: Moments) -> None:
    nightly(moments, "0 2 * * *")
    moments.at(BEFORE, "apply", "jobs.yaml")
    nightly(moments, "0 3 * * *")
    assert moments.at(NOW, "plan", "jobs.yaml", "--days", "30", code=2).stdout.splitlines() == [
        "~ default/nightly",
        "    schedule.cron: 0 2 * * * -> 0 3 * * *",
        "    ticks until 2027-02-12: 1 appear, 30 move",
        "      ~ 30 ticks by +1h: 2027-01-14 02:00Z -> 2027-01-14 03:00Z, …",
        "      + 2027-01-13 03:00Z",
        "    warning applied now it fires twice today (once under either schedule): at 2027-01-13 02:00Z, and again at "
        "2027-01-13 03:00Z; apply it after 2027-01-13 03:00Z instead",
        "1 job: 1 changed.",
        "Nothing was written.",
    ]
    assert "warning" not in moments.at("2027-01-13T03:01Z", "plan", "jobs.yaml", code=2).stdout
    [told] = moments.json_at(NOW, "plan", "jobs.yaml", code=2)["jobs"]
    switch = told["ticks"]["switch_over"]
    assert (switch["kind"], switch["period"], switch["fires"]) == ("doubled", "day", 2)
    assert (switch["past"], switch["coming"]) == ("2027-01-13T02:00:00Z", "2027-01-13T03:00:00Z")
    assert switch["better_after"] == "2027-01-13T03:00:00Z"
    assert told["warnings"] == [switch["words"]]


def test_a_change_that_does_not_fire_today_is_told(moments: Moments) -> None:
    nightly(moments, "0 3 * * *")
    moments.at(BEFORE, "apply", "jobs.yaml")
    nightly(moments, "0 2 * * *")
    said = moments.at(NOW, "plan", "jobs.yaml", code=2).stdout
    assert (
        "warning applied now it does not fire today (once under either schedule): 2027-01-13 02:00Z has passed, and "
        "2027-01-13 03:00Z will not come; apply it after 2027-01-13 03:00Z instead"
    ) in said


@pytest.mark.parametrize(
    ("old", "new", "ran"),
    [("0 2 * * *", "0 3 * * *", ["2027-01-13 02:00", "2027-01-13 03:00"]), ("0 3 * * *", "0 2 * * *", [])],
)
def test_what_the_warning_says_is_what_happens(old: str, new: str, ran: list[str]) -> None:
    """The engine itself, with the same change at the same moment."""
    with world(NIGHTLY % (old, "UTC"), start="2027-01-12 12:00") as w:
        w.run_until("2027-01-13 02:30")
        w.apply(NIGHTLY % (new, "UTC"))
        w.run_until("2027-01-13 23:59")
        assert w.runs("nightly") == ran
        assert w.ledger("nightly") == []


def test_clock_changes_make_groups_of_moves_and_notes(moments: Moments) -> None:
    """S1: a zone with another clock change: +5h in winter, +4h from 2027-03-14 on."""
    nightly(moments, "30 2 * * *", "UTC")
    moments.at(BEFORE, "apply", "jobs.yaml")
    nightly(moments, "30 2 * * *", "America/New_York")
    lines = moments.at("2027-01-13T12:00Z", "plan", "jobs.yaml", code=2).stdout.splitlines()
    assert lines[2:6] == [
        "    ticks until 2027-04-13: 90 move",
        "      ~ 59 ticks by +5h: 2027-01-13 21:30-05:00 -> 2027-01-14 02:30-05:00, …",
        "      ~ 1 tick by +4h30m: 2027-03-13 21:30-05:00 -> 2027-03-14 03:00-04:00",
        "      ~ 30 ticks by +4h: 2027-03-14 22:30-04:00 -> 2027-03-15 02:30-04:00, …",
    ]
    assert lines[6] == "      clock change 2027-03-14: 02:30 does not exist in America/New_York, runs at 03:00"
    nightly(moments, "30 2 * * *", "UTC")
    [told] = moments.json_at("2027-01-13T12:00Z", "plan", "jobs.yaml", "--days", "60", code=0)["jobs"] or [None]
    assert told is None


def test_a_policy_at_a_clock_change_is_one_tick(moments: Moments) -> None:
    """Nothing moves but the one night."""
    job = {"name": "a", "run": {"command": ["x"]}}
    entry = {"cron": "30 2 * * *", "timezone": "America/New_York"}
    write(moments, [{**job, "schedule": entry}])
    moments.at(BEFORE, "apply", "jobs.yaml")
    write(moments, [{**job, "schedule": {**entry, "dst_gap": "skip"}}])
    [told] = moments.json_at(NOW, "plan", "jobs.yaml", code=2)["jobs"]
    ticks = told["ticks"]
    assert (ticks["appear"], ticks["vanish"], ticks["move"], ticks["stay"]) == (0, 1, 0, 89)
    assert ticks["examples"]["vanish"] == ["2027-03-14T07:00:00Z"]
    assert ticks["clock_changes"] == [
        {"date": "2027-03-14", "text": "02:30 does not exist in America/New_York, is skipped"}
    ]
    [short] = moments.json_at(NOW, "plan", "jobs.yaml", "--days", "30", code=2)["jobs"]
    assert short["ticks"] is None  # nothing of it lies within 30 days


def write(moments: Moments, jobs: list[dict[str, Any]], **more: Any) -> None:
    moments.write("jobs.yaml", yaml.safe_dump({"jobs": jobs, **more}))


def test_bad_input_is_1_and_a_missing_database_3(moments: Moments) -> None:
    assert "no such file" in moments("plan", "none.yaml", code=1).stderr.lower()
    assert "Which file? For example: fleetcron plan -f jobs.yaml" in moments("plan", code=1).stderr
    assert "No such option '--dayz'" in moments("plan", "--dayz", "3", code=1).stderr
    moments("plan", "-f", "x", "--days", "0", code=1)
    moments.write("jobs.yaml", "jobs: [{name: A}]")
    assert "jobs.yaml:1:9" in moments("plan", "jobs.yaml", code=1).stderr
    moments.write("jobs.yaml", NIGHTLY % ("0 2 * * *", "UTC"))
    assert "must be" not in moments("plan", "jobs.yaml", "--database", "mysql://x", code=1).stdout
    moments("plan", "jobs.yaml", "--database", "postgresql://127.0.0.1:1/none", code=3)


def test_a_job_that_would_be_refused_is_1_and_shown(moments: Moments) -> None:
    moments("apply", str(EXAMPLES))
    moments("jobs", "cancel", "heartbeat")
    moments.write("jobs.yaml", EXAMPLES.read_text().replace("[echo, alive]", "[echo, dead]").replace("30m", "31m"))
    said = moments("plan", "jobs.yaml", code=1).stdout.splitlines()
    assert said[0] == "~ acme/nightly-report"
    assert said[1] == "    timeout: 30m -> 31m"
    assert said[2].startswith("! default/heartbeat is refused: default/heartbeat is cancelled, which is final")
    assert said[-2:] == ["5 jobs: 1 changed, 1 refused, 3 unchanged.", "Nothing was written."]


def test_a_calendar_tells_what_it_does_to_jobs_that_are_not_in_the_files(moments: Moments) -> None:
    calendar = "calendars: [{name: days, holidays: [%s]}]\n"
    job = 'jobs: [{name: %s, schedule: {cron: "0 9 * * *"}, calendars: [days], run: {command: [x]}}]\n'
    moments.write("days.yaml", calendar % "12-25")
    for name in ("a", "b"):
        moments.write(f"{name}.yaml", job % name)
    moments.at(BEFORE, "apply", "-f", ".")
    moments.write("days.yaml", calendar % "12-25, 02-14")
    said = moments.at(NOW, "plan", "days.yaml", code=2).stdout.splitlines()
    assert said == [
        "~ calendar default/days: moves the ticks of 2 jobs",
        "    2 jobs, ticks until 2027-04-13: 1 vanish, 89 stay",
        "      - 2027-02-14 09:00Z",
        "No jobs.",
        "Nothing was written.",
    ]
    [told] = moments.json_at(NOW, "plan", "days.yaml", code=2)["calendars"]
    assert (told["done"], [(each["jobs"], each["vanish"]) for each in told["ticks"]]) == ("changed", [(2, 1)])


def test_a_folder_is_all_its_files(moments: Moments) -> None:
    folder = moments.path / "jobs"
    (folder / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    one = "jobs: [{name: %s, schedule: {every: 1h}, run: {command: [x]}}]"
    for name in ("a.yaml", "deep/b.yml", "deep/c.json", "notes.txt", ".git/d.yaml"):
        (folder / name).write_text(one % Path(name).stem)
    assert [job["name"] for job in moments.json("plan", "-f", "jobs", code=2)["jobs"]] == ["a", "b", "c"]
    (moments.path / "empty").mkdir()
    said = moments("plan", "-f", "empty", code=1).stderr
    assert said.splitlines() == [
        "error: empty: there is no file of jobs in this folder",
        "hint: they end in .yaml, .yml or .json",
    ]


def test_an_app_is_planned_too(moments: Moments) -> None:
    moments.write(
        "shop_plan.py",
        "from fleetcron import Fleetcron\napp = Fleetcron(name='shop')\n"
        "@app.job(cron='0 2 * * *')\ndef report(ctx): ...\n",
    )
    [told] = moments.json("plan", "--app", "shop_plan:app", code=2)["jobs"]
    assert (told["change"], told["name"], told["ticks"]["appear"]) == ("+", "report", 90)


def test_a_paused_job_fires_neither_before_nor_after(moments: Moments) -> None:
    nightly(moments, "0 2 * * *")
    moments.at(BEFORE, "apply", "jobs.yaml")
    moments.at(BEFORE, "jobs", "pause", "nightly")
    nightly(moments, "0 3 * * *")
    assert moments.at(NOW, "plan", "jobs.yaml", code=2).stdout.splitlines()[1:3] == [
        "    schedule.cron: 0 2 * * * -> 0 3 * * *",
        "    it is paused: nothing fires",
    ]


def test_ticks_that_max_ticks_no_longer_allows_vanish(moments: Moments) -> None:
    text = "jobs: [{name: a, schedule: {every: 1d, anchor: 2027-01-01T00:00:00Z}, max_ticks: %d, run: {command: [x]}}]"
    moments.write("jobs.yaml", text % 10)
    moments.at(BEFORE, "apply", "jobs.yaml")
    moments.write("jobs.yaml", text % 7)
    [told] = moments.json_at(BEFORE, "plan", "jobs.yaml", code=2)["jobs"]
    assert (told["ticks"]["vanish"], told["ticks"]["stay"]) == (3, 7)


def test_busy_jobs_are_compared_within_a_budget(moments: Moments) -> None:
    """Every second for ten years is 315 million ticks. New ones are only counted; a plan of changed ones says how far
    it has looked."""
    moments.write("jobs.yaml", "jobs: [{name: a, schedule: {every: 1s}, run: {command: [x]}}]")
    [told] = moments.json("plan", "jobs.yaml", "--days", "3650", code=2)["jobs"]
    assert (told["ticks"]["complete"], told["ticks"]["appear"]) == (True, 315_360_000)
    assert len(told["ticks"]["examples"]["appear"]) == 10
    one, two = Every("1s"), Every("2s")
    found = firing(Side(one, one, 0), Side(two, two, 0), 10**12, 3650, zones.zone("UTC"), limit=1000)
    assert (found.complete, found.vanish.number, found.stay, found.until) == (False, 500, 500, from_ms(10**12 + 10**6))
    assert "(those after it were not compared)" in found.lines()[0]
    assert (compared(1), compared(100), compared(1_000_000)) == (132_000, 20_000, 1_000)


def test_many_jobs_are_shown_in_part_and_warnings_first(moments: Moments) -> None:
    jobs = [{"name": f"j{n:03}", "schedule": {"cron": "0 5 * * *"}, "run": {"command": ["x"]}} for n in range(60)]
    write(moments, jobs)
    moments.at(BEFORE, "apply", "jobs.yaml")
    for job in jobs:
        job["timeout"] = "5m"
    jobs[59]["schedule"] = {"cron": "0 1 * * *"}
    write(moments, jobs)
    lines = moments.at(NOW, "plan", "jobs.yaml", code=2).stdout.splitlines()
    assert lines[0] == "~ default/j059"
    assert "does not fire today" in "\n".join(lines)
    assert lines[-3:] == [
        "… and 10 more jobs (--json lists them all)",
        "60 jobs: 60 changed.",
        "Nothing was written.",
    ]


def test_on_postgres_too(moments: Moments, postgres18_database: str) -> None:
    url = {"DATABASE_URL": postgres18_database}
    managed = ("--managed-by", "examples", "--prune")
    assert moments.json("plan", str(EXAMPLES), *managed, code=2, **url)["counts"] == {"created": 5}
    assert "not applied yet" in moments("migrate", "--status", **url).stdout
    moments("apply", str(EXAMPLES), *managed, **url)
    assert moments("plan", "-", *managed, given=moments("export", **url).stdout, **url).stdout.endswith("to do.\n")
    events = moments.json("events", **url)
    text = EXAMPLES.read_text().replace("12-25]", "12-24]").replace("name: heartbeat", "name: pulse")
    told = moments.json("plan", "-", *managed, given=text, code=2, **url)
    assert {job["name"]: job["change"] for job in told["jobs"]} == {"pulse": "+", "heartbeat": "-"}
    assert [each["done"] for each in told["calendars"]] == ["changed"]
    assert moments.json("events", **url) == events
