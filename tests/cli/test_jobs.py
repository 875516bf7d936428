"""`fleetcron jobs`: the list, one job, and what people do to it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from fleetcron.model.reading import read_job, read_yaml
from tests.cli.conftest import EXAMPLES
from tests.cli.folder import Folder


def instant(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def test_the_list_for_people_and_for_machines(quick: Folder) -> None:
    quick("apply", str(EXAMPLES))
    lines = quick("jobs").stdout.splitlines()
    assert lines[0].split() == ["NAME", "SCHEDULE", "STATE", "NEXT", "LAST"]
    assert lines[2].startswith("acme/nightly-report   0 2 * * * America/New_York         active  20")
    told = quick.json("jobs")
    assert told.keys() == {"jobs", "after"}
    assert all(
        job.keys()
        == {
            *("tenant", "name", "job_id", "type", "pool", "state", "shadow", "problem", "revision", "schedule"),
            *("next", "next_local", "last", "health"),
        }
        for job in told["jobs"]
    )
    report = next(job for job in told["jobs"] if job["name"] == "nightly-report")
    assert report["next_local"].split(" ")[1] in ("02:00-05:00", "02:00-04:00")
    assert (report["type"], report["pool"], report["last"]) == ("shop.jobs:report", "reports", None)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--tenant", "acme"), ["monthly-billing", "nightly-report"]),
        (("--type", "echo"), ["heartbeat"]),
        (("--pool", "reports"), ["nightly-report"]),
        (("--text", "T-"), ["heartbeat"][:0]),
        (("--text", "ly-"), ["monthly-billing", "nightly-report"]),
        (("--text", "%"), []),
        (("--state", "paused"), ["new-prices"]),
        (("--limit", "1", "--after", "acme/monthly-billing"), ["nightly-report"]),
    ],
)
def test_filters(quick: Folder, options: tuple[str, ...], names: list[str]) -> None:
    quick("apply", str(EXAMPLES))
    quick("jobs", "pause", "new-prices")
    assert [job["name"] for job in quick.json("jobs", *options)["jobs"]] == names


def test_pages_say_how_to_get_more(quick: Folder) -> None:
    quick("apply", str(EXAMPLES))
    page = quick("jobs", "--limit", "2").stdout.splitlines()
    assert page[-1] == "2 shown, there are more: --after acme/nightly-report, or a higher --limit."
    assert quick.json("jobs", "--limit", "2")["after"] == "acme/nightly-report"
    assert quick.json("jobs", "--limit", "5")["after"] is None


def test_a_long_schedule_does_not_widen_the_list(quick: Folder) -> None:
    entries = [{"cron": f"{minute} 2 * * *", "timezone": "America/New_York"} for minute in range(40)]
    job = {"name": "a", "schedule": entries, "run": {"command": ["x"]}}
    for said in (quick("apply", "-", given=json.dumps({"jobs": [job]})).stdout, quick("jobs").stdout):
        assert "0 2 * * * America/New_York; 1 2 * * * America/New_York; 2 2…" in said
        assert max(map(len, said.splitlines())) < 130
    assert "39 2 * * * America/New_York" in quick("jobs", "show", "a").stdout
    assert quick.json("jobs")["jobs"][0]["schedule"].count(";") == 39


def test_nothing_to_show_says_what_to_do(quick: Folder) -> None:
    nothing = quick("jobs", code=2)
    assert nothing.stderr.startswith("error: there is no database fleetcron.db yet\nhint: `fleetcron apply -f FILE`")
    assert list(quick.path.iterdir()) == []
    quick("migrate")
    assert "There is no job yet. Write some into a file and run: fleetcron apply -f jobs.yaml" in quick("jobs").stdout
    assert "No job is like that." in quick("jobs", "--tenant", "nobody").stdout
    assert "Is one running? fleetcron nodes." in quick("runs").stdout
    assert (
        "no tick without a run so far; runs that were skipped or cancelled are in: fleetcron runs --state skipped"
        in quick("ledger").stdout
    )
    assert "No node is running, so nothing is planned." in quick("nodes").stdout


def test_the_next_tick_is_the_next_tick(fleetcron: Folder, quick: Folder) -> None:
    """Also when runs are planned ahead, and when a job's last tick is planned or past."""
    later = (datetime.now(UTC) + timedelta(seconds=40)).replace(microsecond=0)
    once, twice = instant(later), instant(later + timedelta(hours=1))
    fleetcron.write(
        "jobs.yaml",
        f"""
jobs:
  - {{name: ahead, schedule: {{every: 50s, anchor: {once}}}, run: {{command: [x]}}}}
  - {{name: last, schedule: {{at: {once}}}, run: {{command: [x]}}}}
  - {{name: one-of-two, schedule: [{{at: {once}}}, {{at: {twice}}}], run: {{command: [x]}}}}
  - {{name: first-of-many, schedule: {{every: 1h, anchor: {once}}}, max_ticks: 1, run: {{command: [x]}}}}
  - {{name: ends, schedule: {{every: 1h, anchor: {once}}}, ends_at: {twice}, run: {{command: [x]}}}}
""",
    )
    with fleetcron.serving("-f", "jobs.yaml", "--log-level", "debug") as node:
        node.until("5 jobs planned")
        node.stop()
    assert {job["next"] for job in quick.json("jobs")["jobs"]} == {once}
    shown = quick("jobs", shift_s=45).stdout.splitlines()
    after = {job["name"]: (job["next"], job["last"]) for job in quick.json("jobs", shift_s=45)["jobs"]}
    for name in ("last", "first-of-many", "ends"):
        none, gone = after[name]
        assert (none, gone["scheduled_for"], gone["state"]) == (None, once, "planned")
    then, gone = after["one-of-two"]
    assert (then, gone["scheduled_for"], gone["state"]) == (twice, once, "planned")
    assert sum(" -  " in line and "planned" in line for line in shown) == 3
    overdue = quick("jobs", "--text", "ahead", shift_s=300).stdout
    assert "ago), not planned yet" in overdue
    assert quick.json("jobs", "show", "one-of-two", shift_s=45)["next"][0]["scheduled_for"] == twice
    assert quick.json("jobs", "show", "ends", shift_s=45)["next"] == []


def test_show_has_every_field(quick: Folder) -> None:
    quick("apply", str(EXAMPLES))
    shown = quick("jobs", "show", "acme/nightly-report").stdout
    head = "acme/nightly-report\n  state     active\n  schedule  0 2 * * * America/New_York\n  next      20"
    assert shown.startswith(head)
    document = yaml.safe_load(shown.partition("Every field:\n")[2])
    told = quick.json("jobs", "show", "acme/nightly-report")
    assert document == told["definition"]
    assert (document["misfire"]["grace"], document["schedule"][0]["dst_gap"]) == ("1m", "shift")
    assert len(told["next"]) == 3


def test_pause_resume_cancel_delete(quick: Folder) -> None:
    """S3-3, S3-4: and every one of them is a revision with its author."""
    quick("apply", "-", given="jobs: [{name: a, schedule: {every: 1m}, run: {command: [x]}}]", shift_s=-3600)
    paused = quick("jobs", "pause", "a", "--on-resume", "all", "--by", "ann", shift_s=-3500)
    assert paused.stdout.splitlines() == [
        "default/a: paused.",
        "When it is resumed, the ticks meanwhile: all. Resume it: fleetcron jobs resume a",
    ]
    assert "on resume: all" in quick("jobs", "show", "a").stdout
    assert quick.json("jobs", "pause", "a", "--on-resume", "latest")["on_resume"] == "latest"
    resumed = quick.json("jobs", "resume", "a", "--missed", "skip")
    assert resumed.keys() == {"tenant", "name", "done", "state", "revision", "on_resume", "next"}
    assert (resumed["done"], resumed["state"]) == ("resumed", "active")
    assert "default/a: unchanged (it is active), next at 20" in quick("jobs", "resume", "a").stdout
    assert "default/a: cancelled." in quick("jobs", "cancel", "a").stdout
    refused = quick("jobs", "pause", "a", code=2).stderr
    assert refused == "error: default/a is cancelled; only an active job can be paused\n"
    assert "default/a: deleted." in quick("jobs", "delete", "default/a").stdout
    assert "there is no job a of tenant default" in quick("jobs", "show", "a", code=2).stderr
    quick("apply", "-", given="jobs: [{name: a, schedule: {every: 5m}, run: {command: [x]}}]")
    history = quick("jobs", "history", "a").stdout
    assert history.count("create by") == 2
    assert "pause by ann" in history
    assert ", deleted 20" in history
    kinds = [event["kind"] for event in quick.json("events", "--job", "a")["events"]]
    assert kinds[:2] == ["job_created", "job_deleted"]


def test_a_name_that_is_nearly_right(quick: Folder) -> None:
    quick("apply", str(EXAMPLES))
    for command in (("jobs", "show"), ("jobs", "pause"), ("jobs", "history"), ("runs", "--job"), ("ledger", "--job")):
        said = quick(*command, "nightly-report", code=2).stderr
        assert said == ("error: there is no job nightly-report of tenant default; did you mean acme/nightly-report?\n")
    assert "did you mean default/heartbeat?" in quick("jobs", "cancel", "hartbeat", code=2).stderr
    assert "`fleetcron jobs` lists them all" in quick("jobs", "cancel", "xyz", code=2).stderr
    typo = quick("jobs", "shwo", "heartbeat", code=2).stderr
    assert "There is no command 'shwo'. Did you mean show? 'fleetcron jobs --help' lists them." in typo


def test_export_can_be_applied(quick: Folder, tmp_path: Path) -> None:
    quick("apply", str(EXAMPLES))
    quick("jobs", "pause", "new-prices")
    brief, full = quick("jobs", "export").stdout, quick("jobs", "export", "--full").stdout
    assert brief.splitlines()[0] == "# default/new-prices is paused"
    assert len(brief) < len(full) / 3
    for text in (brief, full, quick("jobs", "export", "--json").stdout):
        assert quick.json("apply", "-", given=text)["counts"]["unchanged"] == 5
        fresh = quick.json("apply", "-", "--database", f"sqlite:///{tmp_path}/other.db", "--dry-run", given=text)
        assert (fresh["counts"]["created"], len(fresh["calendars"])) == (5, 1)
    one = read_yaml(quick("jobs", "export", "heartbeat").stdout, "")
    assert one == {
        "jobs": [
            {
                "name": "heartbeat",
                "description": "Says that the scheduler lives",
                "schedule": {"every": "1m", "anchor": "2026-01-01T00:00:00Z"},
                "run": {"command": ["echo", "alive"]},
                "misfire": {"policy": "skip"},
            }
        ]
    }


ODD = (
    {"run": {"http": {"url": "https://x", "body": ""}}},
    {"run": {"command": "a | b", "shell": True, "env": {"EMPTY": "", "NO": "no"}}},
    {"run": {"command": ["1e3", "on", "<<", "~", "0x1f", "=", "- a", "#", "a: b", "\t", "\u2028", "é"]}},
    {"run": {"python": "m:f"}, "type": "-:-"},
    {"run": {"python": "m:f"}, "payload": {"<<": 1, "on": True, "1": "1", "x": ["1e3", 1e3, None, "null", "12:30:45"]}},
    {"run": {"python": "m:f"}, "payload": {"text": "a\nb\n", "empty": [], "deep": {"": {}}}},
    {"run": {"python": "m:f"}, "schedule": {"cron": "0 2 * * *", "dst_gap": "skip", "month_end": "clamp"}},
    {"run": {"python": "m:f"}, "retry": {"backoff": {"exponential": {"first": "5s", "max": "1h"}}, "jitter": 0}},
    {"run": {"python": "m:f"}, "alerts": {"on_failure": False, "after_missed": None}, "retention": {"runs": 5}},
    {"run": {"python": "m:f"}, "description": "2027-01-01", "start_deadline": "1h", "priority": -5},
)  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: json.dumps(odd)[:60])
def test_export_keeps_odd_values(odd: dict[str, object]) -> None:
    """Texts that YAML would take for something else, empty values, and defaults that somebody changed."""
    from fleetcron.cli.export import brief
    from fleetcron.cli.yamltext import dumped

    definition = read_job({"name": "odd", "schedule": {"every": "1h"}, **odd})
    for document in (brief(definition.as_document()), definition.as_document()):
        again = read_job(read_yaml(dumped(document), "export"))
        assert again == definition
        assert yaml.safe_load(dumped(document)) == document  # and another reader reads the same


def test_commands_take_the_database_before_and_after_the_name(quick: Folder) -> None:
    url = f"sqlite:///{quick.path}/elsewhere.db"
    quick("apply", str(EXAMPLES), "--database", url)
    before = quick("jobs", "--database", url, "show", "heartbeat").stdout
    assert quick("jobs", "show", "heartbeat", "--database", url).stdout.splitlines()[0] == before.splitlines()[0]
    assert quick("jobs", "show", "heartbeat", DATABASE_URL=url).stdout.splitlines()[0] == "default/heartbeat"
    quick.write("fleetcron.toml", f'[store]\nurl = "{url}"\n')
    assert "default/heartbeat" in quick("jobs").stdout
    quick.write("other.toml", '[store]\nurl = "sqlite:///none.db"\n')
    assert "there is no database none.db yet" in quick("jobs", "--config", "other.toml", code=2).stderr
    assert not (quick.path / "fleetcron.db").exists()
