"""`fleetcron apply`: what it does, what it says, and that it does nothing when it should not."""

import hashlib
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import EXAMPLES
from tests.cli.folder import Folder, alive

TWO = """
jobs:
  - {name: a, schedule: {every: 15m}, run: {command: [x]}}
  - {name: b, tenant: acme, schedule: {cron: "0 2 * * *", timezone: Europe/Berlin}, run: {python: "m:f"}}
"""


def test_what_is_created_changed_and_left_alone(quick: Folder) -> None:
    """S2-6: a schedule is mutable; every change is told by field, and the same again is no change."""
    quick.write("jobs.yaml", TWO)
    first = quick("apply", "-f", "jobs.yaml").stdout
    assert first.splitlines() == [
        "+  default/a  created  every 15m",
        "+  acme/b     created  0 2 * * * Europe/Berlin",
        "2 jobs: 2 created.",
        "Look at them: fleetcron jobs. Run them: fleetcron serve.",
    ]
    assert quick("apply", "-f", "jobs.yaml").stdout.splitlines()[0] == "2 jobs: 2 unchanged."
    quick.write("jobs.yaml", TWO.replace("0 2 * * *", "0 3 * * *").replace("[x]", "[x], env: {A: b}"))
    changed = quick("apply", "-f", "jobs.yaml", "--by", "ann").stdout.splitlines()
    assert changed[0] == "~  default/a  changed  run.env.A: nothing -> b"
    assert changed[1] == "~  acme/b     changed  schedule.cron: 0 2 * * * -> 0 3 * * *"
    assert changed[2] == "2 jobs: 2 changed."
    [edited, created] = quick.json("jobs", "history", "acme/b")["revisions"]
    assert (edited["action"], edited["by"], edited["revision"]) == ("edit", "ann", 2)
    assert edited["changes"] == [{"field": "schedule.cron", "old": "0 2 * * *", "new": "0 3 * * *"}]
    assert (created["action"], created["changes"]) == ("create", [])


def test_json_has_stable_keys(quick: Folder) -> None:
    quick.write("jobs.yaml", TWO + "calendars: [{name: days, holidays: [12-25]}]\n")
    told = quick.json("apply", "jobs.yaml")
    assert told.keys() == {"dry_run", "counts", "calendars", "jobs"}
    assert told["counts"] == {"created": 2, "changed": 0, "unchanged": 0, "refused": 0}
    assert told["calendars"] == [
        {"tenant": "default", "name": "days", "done": "created", "jobs_moved": 0, "jobs_stuck": 0}
    ]
    keys = {"tenant", "name", "done", "state", "revision", "next", "changes", "reason", "warning"}
    assert all(job.keys() == keys | {"schedule", "managed_by"} for job in told["jobs"])


def test_what_no_worker_can_run_is_accepted_with_a_warning(quick: Folder) -> None:
    quick.write("jobs.yaml", TWO.replace("{command: [x]}", "{publish: {broker: nats, to: reports}}"))
    warning = "no worker can publish to a broker yet: its runs wait until one can"
    assert f"warning {warning}: default/a" in quick("apply", "jobs.yaml", "--dry-run").stdout.splitlines()
    told = {job["name"]: job["warning"] for job in quick.json("apply", "jobs.yaml")["jobs"]}
    assert told == {"a": warning, "b": None}
    assert "warning" not in quick("apply", "jobs.yaml").stdout  # said once


def test_a_job_that_was_cancelled_is_told_each_time(quick: Folder) -> None:
    """It looks like all is well otherwise: unchanged, exit code 0, and it never runs."""
    quick.write("jobs.yaml", TWO)
    quick("apply", "jobs.yaml")
    quick("jobs", "cancel", "a")
    said = "cancelled, and will never run: choose another name, or run `fleetcron jobs delete` first and apply it again"
    for more in ((), (), ("--dry-run",)):
        shown = quick("apply", "jobs.yaml", *more).stdout.splitlines()
        assert shown[:2] == ["2 jobs: 2 unchanged.", f"warning {said}: default/a"]
    told = {job["name"]: job["warning"] for job in quick.json("apply", "jobs.yaml")["jobs"]}
    assert told == {"a": said, "b": None}
    quick("jobs", "delete", "a")
    again = quick("apply", "jobs.yaml").stdout
    assert "created" in again
    assert "warning" not in again


def test_where_to_look_is_said_of_what_is_there(quick: Folder) -> None:
    quick.write("jobs.yaml", TWO)
    assert "Look at them: fleetcron jobs." in quick("apply", "jobs.yaml", "--managed-by", "shop").stdout
    told = quick("apply", "jobs.yaml", "--managed-by", "other", code=1).stdout
    assert "2 jobs: 2 refused." in told
    assert "Look at them" not in told
    quick.write("jobs.yaml", TWO.replace("name: a,", "name: c,"))
    assert "Look at them" in quick("apply", "jobs.yaml", "--managed-by", "other", code=1).stdout


def test_a_pool_that_no_worker_serves_is_told(quick: Folder) -> None:
    """While no worker lives at all it is not the pool that is missing."""
    quick.write("jobs.yaml", TWO.replace("name: b,", "name: b, pool: reports,"))
    assert "warning" not in quick("apply", "jobs.yaml").stdout
    assert "warning" not in quick("jobs").stdout
    alive(quick, {"default": 2})
    said = "no worker serves the pool reports (fleetcron worker --pool reports=2)"
    assert f"warning {said}: acme/b" in quick("apply", "jobs.yaml").stdout.splitlines()
    assert [job["warning"] for job in quick.json("apply", "jobs.yaml", "--dry-run")["jobs"]] == [None, said]
    line = "warning 1 job is in the pool reports, which no worker serves: --pool reports=2"
    assert quick("jobs").stdout.splitlines()[-1] == line
    assert "warning" not in quick("jobs", "--pool", "default").stdout
    alive(quick, {"reports": 1})
    assert "warning" not in quick("apply", "jobs.yaml").stdout
    assert "warning" not in quick("jobs").stdout


def test_a_region_that_no_scheduler_serves_is_told(quick: Folder) -> None:
    """While nobody plans at all it is not the region that is missing."""
    quick.write("jobs.yaml", TWO.replace("name: b,", "name: b, region: mars,"))
    assert "warning" not in quick("apply", "jobs.yaml").stdout
    alive(quick, {"default": 2})
    said = "no scheduler is at work in the region mars, so nobody plans its ticks (fleetcron serve --region mars)"
    assert f"warning {said}: acme/b" in quick("apply", "jobs.yaml").stdout.splitlines()
    assert [job["warning"] for job in quick.json("apply", "jobs.yaml", "--dry-run")["jobs"]] == [None, said]
    assert quick.json("jobs", "show", "acme/b")["warnings"] == [said]
    both = TWO.replace("name: b,", "name: c, region: mars, pool: reports,").replace(
        "name: a,", "name: d, region: mars,"
    )
    quick.write("jobs.yaml", both)
    pool = "no worker serves the pool reports (fleetcron worker --pool reports=2)"
    planned = quick.json("plan", "jobs.yaml", code=2)["jobs"]
    assert {job["name"]: job["warnings"] for job in planned} == {"d": [said], "c": [f"{said}; {pool}"]}
    with quick.serving("-f", "jobs.yaml", "--region", "mars", "--pool", "reports=1", "--no-api") as node:
        node.until("Look at it")
        assert any("2 created" in each for each in node.lines)
        assert not any("nobody plans" in each for each in node.lines)  # it is about to do it itself


def test_what_no_living_worker_can_run_is_told(quick: Folder) -> None:
    """A shell that none of them allows, a function that none of them has; by `apply`, `plan` and `jobs`."""
    quick.write("jobs.yaml", TWO.replace("[x]", '"a | b", shell: true'))
    quick("apply", "jobs.yaml")
    alive(quick, {"default": 2}, {"shell": "no shell here", "python:* but shop.jobs": "settings"})
    shell = "no worker of the pool default can run a text for the shell (w-default: no shell here)"
    handler = "m:f is not among the handlers of this worker; add it to executor.handlers"
    function = f"no worker of the pool default can run python:m:f (w-default: {handler})"
    shown = quick("apply", "jobs.yaml").stdout.splitlines()
    assert f"warning {shell}: default/a" in shown
    assert f"warning {function}: acme/b" in shown
    assert [job["warning"] for job in quick.json("apply", "jobs.yaml", "--dry-run")["jobs"]] == [shell, function]
    quick.write("jobs.yaml", TWO.replace("[x]", '"a | c", shell: true'))
    assert [job["warnings"] for job in quick.json("plan", "jobs.yaml", code=2)["jobs"]] == [[shell]]
    assert f"warning   {shell}" in quick("jobs", "show", "a").stdout
    assert quick.json("jobs", "show", "acme/b")["warnings"] == [function]
    alive(quick, {"default": 1, "other": 1})
    assert "warning" not in quick("apply", "jobs.yaml", "--dry-run").stdout


def test_a_dry_run_writes_nothing_and_says_the_same(quick: Folder) -> None:
    quick.write("jobs.yaml", TWO)
    planned = quick("apply", "jobs.yaml", "--dry-run").stdout
    assert planned.splitlines()[-1] == "This was a dry run: nothing was written."
    assert [path.name for path in quick.path.iterdir()] == ["jobs.yaml"]
    assert quick("apply", "jobs.yaml").stdout.splitlines()[:2] == planned.splitlines()[:2]

    quick("jobs", "cancel", "a")
    quick.write(
        "jobs.yaml",
        TWO.replace("[x]", "[y]").replace('python: "m:f"}', 'python: "m:g"}, calendars: [days]')
        + "  - {name: c, schedule: {cron: '0 9 25 12 *'}, run: {command: [x]}, calendars: [days]}\n"
        + "calendars: [{name: days, tenant: acme, holidays: [12-25]}, {name: days, weekdays: [MON]}]\n",
    )
    before = _content(quick.path)
    rehearsed = quick.json("apply", "jobs.yaml", "--dry-run", code=1)
    assert _content(quick.path) == before
    done = quick.json("apply", "jobs.yaml", code=1)
    assert rehearsed.pop("dry_run")
    assert not done.pop("dry_run")
    assert rehearsed == done
    assert [job["done"] for job in done["jobs"]] == ["refused", "changed", "created"]
    assert "default/a is cancelled, which is final" in done["jobs"][0]["reason"]


def _content(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_dry_run_on_postgres(quick: Folder, postgres18_database: str) -> None:
    """Nothing is written, not even tables, and later not even an event."""
    url = {"DATABASE_URL": postgres18_database}
    assert quick.json("apply", str(EXAMPLES), "--dry-run", **url)["counts"]["created"] == 5
    assert "not applied yet" in quick("migrate", "--status", **url).stdout
    quick("apply", str(EXAMPLES), **url)
    events = quick.json("events", **url)
    text = EXAMPLES.read_text().replace("timeout: 30m", "timeout: 31m").replace("12-25]", "12-24]")
    told = quick.json("apply", "-", "--dry-run", given=text, **url)
    assert told["counts"] == {"created": 0, "changed": 1, "unchanged": 4, "refused": 0}
    assert [calendar["done"] for calendar in told["calendars"]] == ["changed"]
    assert quick.json("events", **url) == events


def test_every_mistake_of_every_file_has_its_place(quick: Folder) -> None:
    quick.write(
        "one.yaml",
        "jobs:\n  - name: a\n    schedule: {every: 5x}\n    run: {command: [x]}\n    tiemout: 5m\n"
        "  - name: a\n    schedule: {cron: '0 0 30 2 *'}\n    run: {comand: [x]}\n",
    )
    quick.write("two.json", json.dumps({"jobs": [{"name": "B!", "schedule": {"every": "5m"}}]}))
    quick.write("three.yaml", "jobs: [\n")
    said = quick("apply", "one.yaml", "two.json", "three.yaml", "four.yaml", code=2)
    found = said.stderr.splitlines()
    assert said.stdout == ""
    for line in (
        "error: three.yaml:2:1: not YAML",
        "error: four.yaml: cannot be read: No such file or directory",
        "error: one.yaml:3:16: /jobs/0/schedule/every: '5x' is not a duration",
        "hint: write it as 30s, 15m, 1h, 7d or 1h30m",
        "error: one.yaml:5:5: /jobs/0/tiemout: unknown field 'tiemout'",
        "hint: did you mean timeout?",
        "error: one.yaml:6:5: /jobs/1/name: a is the name of /jobs/0 too",
        "error: one.yaml:7:16: /jobs/1/schedule/cron: ",
        "error: one.yaml:8:11: /jobs/1/run/comand: unknown field 'comand'",
        "error: two.json:1:12: /jobs/0/name: 'B!' is not a name",
        "error: two.json:1:11: /jobs/0/run: is missing",
    ):
        assert any(each.startswith(line) for each in found), f"{line}\n\n{said.stderr}"
    assert not (quick.path / "fleetcron.db").exists()


def test_one_mistake_keeps_everything_out(quick: Folder) -> None:
    quick.write("good.yaml", TWO)
    quick.write("bad.yaml", "jobs: [{name: a, schedule: {every: 1h}, run: {command: [x]}}]")
    said = quick("apply", "good.yaml", "bad.yaml", code=2)
    assert "error: bad.yaml:1:9: /jobs/0/name: a of tenant default is in good.yaml too" in said.stderr
    assert not (quick.path / "fleetcron.db").exists()


def test_calendars_may_stand_in_another_file_or_in_the_store(quick: Folder) -> None:
    job = "jobs: [{name: %s, schedule: {cron: '0 9 %s 12 *'}, run: {command: [x]}, calendars: [free]}]"
    quick.write("jobs.yaml", job % ("a", 25))
    quick.write("days.yaml", "calendars: [{name: free, holidays: [12-25]}]")
    assert "never fires" in quick("apply", "jobs.yaml", "days.yaml", code=2).stderr
    quick.write("days.yaml", "calendars: [{name: free, holidays: [12-24]}]")
    assert "there is no calendar free" in quick("apply", "jobs.yaml", code=1).stdout
    quick("apply", "days.yaml")
    quick("apply", "jobs.yaml")
    late = quick("apply", "-", given=job % ("b", 24), code=2)
    assert "error: standard input:1:" in late.stderr
    assert "never fires" in late.stderr


def test_an_ics_file_next_to_the_document(quick: Folder) -> None:
    (quick.path / "conf").mkdir()
    quick.write(
        "conf/free.ics",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20281225\nEND:VEVENT\nEND:VCALENDAR\n",
    )
    quick.write("conf/days.yaml", "calendars: [{name: free, ics: free.ics}]")
    assert "+  calendar default/free  created" in quick("apply", "conf/days.yaml").stdout
    quick.write("conf/days.yaml", "calendars: [{name: free, ics: gone.ics}]")
    assert "conf/days.yaml:1:26: /calendars/0/ics: cannot be read" in quick("apply", "conf/days.yaml", code=2).stderr


def test_an_instant_in_the_past_is_finished_at_once_and_in_the_ledger(quick: Folder) -> None:
    given = "jobs: [{name: gone, schedule: {at: 2020-01-01T00:00:00Z}, run: {command: [x]}}]"
    assert "finished at once: nothing of its schedule is left" in quick("apply", "-", given=given).stdout
    [entry] = quick.json("ledger")["ledger"]
    assert (entry["answer"], entry["reason"], entry["from"]) == ("missed", "in_the_past", "2020-01-01T00:00:00Z")
    assert quick.json("jobs")["jobs"][0]["next"] is None


def test_no_file_and_no_jobs(quick: Folder) -> None:
    assert "Which file? For example: fleetcron apply -f jobs.yaml" in quick("apply", code=2).stderr
    assert "the document is empty" in quick("apply", "-", code=2).stderr
    assert quick("apply", "-", given="jobs: []").stdout == "No jobs in these files.\n"


@pytest.mark.parametrize(("dry_run", "words"), [
    ((), "at least 2 of 3 jobs were applied, each of them whole. Apply again: that is safe"),
    (("--dry-run",), "nothing was written"),
])  # fmt: skip
def test_ctrl_c_says_what_was_done(
    quick: Folder, monkeypatch: pytest.MonkeyPatch, dry_run: tuple[str, ...], words: str
) -> None:
    """It comes while somebody looks at the bar."""
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs tests behind a `&` has none

    @contextmanager
    def bar(*_: object) -> Iterator[Callable[[int], None]]:
        yield lambda _: signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("fleetcron.applying.apply.BATCH", 2)
    monkeypatch.setattr("fleetcron.cli.apply.progress_bar", bar)
    three = [{"name": name, "schedule": {"every": "1h"}, "run": {"command": ["x"]}} for name in "abc"]
    quick.write("jobs.json", json.dumps({"jobs": three}))
    assert words in quick("apply", "jobs.json", *dry_run, code=1).stderr
    monkeypatch.undo()
    assert quick.json("apply", "jobs.json")["counts"]["created"] == (3 if dry_run else 1)
    monkeypatch.setattr("fleetcron.cli.wished.read", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    assert "Interrupted: nothing was written." in quick("apply", "jobs.json", code=1).stderr  # while it reads
    signal.signal(signal.SIGINT, heard)


def test_many_jobs_show_only_the_first_but_count_all(quick: Folder) -> None:
    jobs = [{"name": f"job-{n}", "schedule": {"every": "1h"}, "run": {"command": ["x"]}} for n in range(600)]
    said = quick("apply", "-", given=json.dumps({"jobs": jobs})).stdout.splitlines()
    assert len(said) == 53
    assert said[0] == "+  default/job-0   created  every 1h"
    assert said[-3] == "… and 550 more jobs (--json lists them all)"
    assert said[-2] == "600 jobs: 600 created."
    assert len(quick.json("jobs", "--limit", "2000")["jobs"]) == 600
    quick("jobs", "cancel", "job-77")
    jobs = [{**job, "timeout": "5m"} for job in jobs]
    said = quick("apply", "-", given=json.dumps({"jobs": jobs}), code=1).stdout.splitlines()
    assert said[49].startswith("!  default/job-77  refused  default/job-77 is cancelled, which is final")
    assert said[-2] == "600 jobs: 599 changed, 1 refused."


@pytest.mark.parametrize("name", ["jobs.yaml"])
def test_the_examples_are_right(quick: Folder, name: str) -> None:
    told = quick.json("apply", str(EXAMPLES.with_name(name)), "--dry-run")
    assert told["counts"]["created"] == 5
    assert all(job["state"] == "active" for job in told["jobs"])
