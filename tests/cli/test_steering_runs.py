"""What people do to runs from the command line: trigger, backfill, cancel, replay."""

import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.folder import Folder

JOBS = """
jobs:
  - {name: sync, schedule: {every: 1h, anchor: "2026-01-01T00:00:00Z"}, run: {command: ["true"]}}
  - {name: report, tenant: acme, type: report, schedule: {cron: "0 2 * * *"}, run: {command: ["true"]}}
"""


@pytest.fixture
def ready(quick: Folder) -> Folder:
    quick.write("jobs.yaml", JOBS)
    quick("apply", "-f", "jobs.yaml")
    return quick


def sql(folder: Folder, text: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(folder.path / "fleetcron.db", timeout=20)) as database, database:
        return database.execute(text, values).fetchall()


def state(folder: Folder, run_id: int) -> str:
    [(found,)] = sql(folder, "SELECT state FROM runs WHERE run_id = ?", run_id)
    return str(found)


# -- trigger


def test_trigger_makes_a_run_of_its_own(ready: Folder) -> None:
    """S0-61, S1-37, S4-27: at once, outside the schedule, with a payload of its own."""
    said = ready("jobs", "trigger", "sync")
    assert said.stdout.splitlines()[0] == "default/sync: run 1 is on its way."
    made = ready.json("jobs", "trigger", "acme/report", "--payload", '{"kind": "full"}', "--by", "ann")
    assert (made["run_id"], made["tenant"], made["name"], made["created"]) == (2, "acme", "report", True)
    assert made["idempotency_key"] == f"job:{made['job_id']}:manual:2"
    rows = sql(ready, "SELECT kind, lane, payload, asked_by FROM runs ORDER BY run_id")
    assert rows[1] == ("manual", "live", '{"kind":"full"}', "ann")
    assert rows[0][2] is None
    ready.write("payload.json", '{"kind": "file"}')
    ready("jobs", "trigger", "sync", "--payload", "@payload.json")
    ready("jobs", "trigger", "sync", "--payload", "@-", given='{"kind": "stdin"}')
    assert sql(ready, "SELECT payload FROM runs WHERE run_id > 2") == [('{"kind":"file"}',), ('{"kind":"stdin"}',)]


def test_the_same_key_is_the_same_run(ready: Folder) -> None:
    first = ready.json("jobs", "trigger", "sync", "--key", "deploy-7")
    again = ready.json("jobs", "trigger", "sync", "--key", "deploy-7")
    assert again == {**first, "created": False}
    assert ready("jobs", "trigger", "sync", "--key", "deploy-7").stdout.startswith("default/sync: it is run 1.")
    other = ready("jobs", "trigger", "sync", "--key", "deploy-7", "--payload", "{}", code=2)
    assert other.stderr == "error: the key 'deploy-7' was used before, with another payload\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["snyc"], "error: there is no job snyc of tenant default; did you mean default/sync?"),
        (["sync", "--payload", "{kind: full}"], "error: --payload: it is not JSON"),
        (["sync", "--payload", "[1]"], "error: --payload: must be a JSON object"),
        (["sync", "--payload", "@nothing.json"], "error: --payload: nothing.json cannot be read: No such file"),
        (["sync", "--payload", '{"a": "{{ x }}"}'], "error: /payload/a: '{{ x }}' is not a template"),
        (
            ["sync", "--payload", '{"a": 1, "b": {"c": 1, "c": 2}}'],
            "--payload: the key 'c' is written twice\nhint: keep",
        ),
        (["sync", "--payload", '{"a":' * 40 + "1" + "}" * 40], "nested deeper than 32 levels"),
        (["sync", "--payload", '{"a": NaN}'], "error: /payload/a: nan is not a JSON number"),
        (["sync", "--key", ""], "--key: write 1 to 200 characters"),
    ],
)
def test_what_cannot_be_triggered_says_why(ready: Folder, words: list[str], message: str) -> None:
    assert message in ready("jobs", "trigger", *words, code=2).stderr
    assert sql(ready, "SELECT * FROM runs") == []


def test_a_payload_that_is_too_deep_is_told_so(ready: Folder) -> None:
    """However deep: it is JSON, and the limit is another one."""
    for opened, closed in (('{"a":', "}"), ("[", "]")):
        ready.write("deep.json", opened * 100_000 + "1" + closed * 100_000)
        said = ready("jobs", "trigger", "sync", "--payload", "@deep.json", code=2).stderr
        assert said == "error: --payload: nested deeper than 32 levels\nhint: make the payload flatter\n"
    assert sql(ready, "SELECT * FROM runs") == []


def test_a_cancelled_job_is_not_triggered(ready: Folder) -> None:
    ready("jobs", "cancel", "sync")
    said = ready("jobs", "trigger", "sync", code=2)
    assert said.stderr == "error: default/sync is cancelled: it never runs again\n"
    ready("jobs", "pause", "acme/report")
    ready("jobs", "trigger", "acme/report")


# -- backfill


def test_backfill_creates_what_is_missing(ready: Folder) -> None:
    call = ("jobs", "backfill", "sync", "--from", "2026-01-01", "--to", "2026-01-03")
    assert ready(*call, "--dry-run").stdout == "default/sync: 48 runs would be created for 48 ticks.\n"
    assert sql(ready, "SELECT * FROM runs") == []
    done = ready.json(*call, "--by", "ann")
    counts = {"ticks": 48, "created": 48, "superseded": 0, "existing": 0, "undecided": 0, "dry_run": False}
    assert {key: done[key] for key in counts} == counts
    assert (done["from"], done["to"]) == ("2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z")
    assert sql(ready, "SELECT DISTINCT kind, lane, asked_by FROM runs") == [("backfill", "catchup", "ann")]
    again = ready(*call).stdout.splitlines()
    assert again == [
        "default/sync: 0 runs created for 48 ticks.",
        "48 ticks had a run already: fleetcron runs --job default/sync",
    ]
    empty = ready("jobs", "backfill", "sync", "--from", "2025-12-31T00:30", "--to", "2025-12-31T00:40").stdout
    assert empty == "default/sync: there is no tick in this stretch of the past.\n"


def test_backfill_refuses_what_is_absurd(ready: Folder) -> None:
    call = ("jobs", "backfill", "sync", "--from", "2000-01-01", "--to", "2026-01-01")
    assert "227,928 ticks lie there, and the limit is 10,000" in ready(*call, code=2).stderr
    assert "the limit is 20" in ready(*call, "--limit", "20", code=2).stderr
    wrong = ready("jobs", "backfill", "sync", "--from", "2026-01-02", "--to", "2026-01-01", code=2)
    assert wrong.stderr == (
        "error: the stretch ends before it begins: its end is now if none is given,"
        " and what is to come is planned anyway\n"
    )
    assert "is not an instant" in ready("jobs", "backfill", "sync", "--from", "yesterday", code=2).stderr
    assert sql(ready, "SELECT * FROM runs") == []


def test_backfill_shows_its_progress_on_a_terminal_only(ready: Folder) -> None:
    call = ["jobs", "backfill", "sync", "--from", "2026-01-01", "--to", "2026-02-01", "--dry-run"]
    assert ready(*call).stderr == ""
    here, there = pty.openpty()
    with os.fdopen(here, "rb", buffering=0) as screen:
        done = subprocess.run(
            [sys.executable, "-m", "fleetcron", *call], cwd=ready.path, stdout=subprocess.PIPE, stderr=there, check=True
        )
        os.close(there)
        shown = b""
        while True:
            try:
                piece = screen.read(4096)
            except OSError:  # nobody writes any more
                break
            if not piece:
                break
            shown += piece
    assert done.stdout == b"default/sync: 744 runs would be created for 744 ticks.\n"
    assert b"backfilling" in shown
    assert b"744/744" in shown


# -- cancel and replay


def test_cancel_and_replay(ready: Folder) -> None:
    """S3-4, S3-8: each run has its answer; what could not be done makes the exit code 1."""
    for _ in range(2):
        ready("jobs", "trigger", "sync")
    said = ready("runs", "cancel", "1", "2", "9", "--reason", "not today", "--by", "bob", code=1)
    assert [line.split() for line in said.stdout.splitlines()] == [
        ["1", "default/sync", "cancelled"],
        ["2", "default/sync", "cancelled"],
        ["9", "-", "refused", "there", "is", "no", "such", "run"],
    ]
    assert sql(ready, "SELECT reason FROM runs") == [("cancelled: not today (by bob)",)] * 2
    assert ready("why", "1").stdout == "cancelled: not today (by bob)\n"
    assert "\n  why           cancelled: not today (by bob)\n" in ready("runs", "show", "1").stdout
    assert ready("runs").stdout.splitlines()[1].endswith("  not today (by bob)")
    assert ready.json("runs", "cancel", "1") == {
        "runs": [{"run_id": 1, "job": "default/sync", "done": "unchanged", "reason": "it is cancelled"}]
    }
    assert ready("runs", "replay", "1").stdout.split() == ["1", "default/sync", "replayed"]
    assert (state(ready, 1), state(ready, 2)) == ("planned", "cancelled")
    assert sql(ready, "SELECT run_id, lane FROM upcoming") == [(1, "catchup")]
    sql(ready, "UPDATE runs SET state = 'succeeded', finished_ms = 1 WHERE run_id = 1")
    refused = ready("runs", "replay", "1", code=1).stdout
    assert "it has succeeded; for another run: fleetcron jobs trigger default/sync" in refused
    kinds = [event["kind"] for event in ready.json("events", "--job", "sync")["events"]]
    assert kinds[:5] == ["run_replayed", "run_cancelled", "run_cancelled", "run_triggered", "run_triggered"]


def test_a_backfill_is_undone(ready: Folder) -> None:
    """All runs of a job, or those of a kind; asked for with their number, and only what has not ended."""
    ready("jobs", "backfill", "sync", "--from", "2026-01-01", "--to", "2026-01-29")  # 672 runs: more than one batch
    manual = int(ready.json("jobs", "trigger", "sync")["run_id"])
    other = int(ready.json("jobs", "trigger", "acme/report")["run_id"])
    ready("runs", "cancel", "1")
    call = ("runs", "cancel", "--job", "sync", "--kind", "backfill")
    assert ready(*call, "--dry-run").stdout == "671 backfill runs of default/sync would be cancelled.\n"
    for given in ("n\n", ""):  # no, and nobody there
        assert "Cancel 671 backfill runs of default/sync? [y/N]" in ready(*call, given=given, code=1).stderr
    assert "--json asks nobody: add --yes" in ready(*call, "--json", code=2).stderr
    assert sql(ready, "SELECT count(*) FROM runs WHERE state = 'cancelled'") == [(1,)]
    assert ready(*call, "--reason", "wrong job", "--by", "bob", given="y\n").stdout == (
        "default/sync: 671 runs cancelled.\n"
    )
    assert sql(ready, "SELECT count(*) FROM runs WHERE reason = 'cancelled: wrong job (by bob)'") == [(671,)]
    assert (state(ready, manual), state(ready, other)) == ("planned", "planned")
    assert ready(*call).stdout == "No backfill run of default/sync is open: nothing to cancel.\n"
    assert ready.json("runs", "cancel", "--job", "sync", "--yes") == {
        "job": "default/sync", "kind": None, "dry_run": False, "open": 1, "cancelled": 1, "stopping": 0,
    }  # fmt: skip
    assert (state(ready, manual), state(ready, other)) == ("cancelled", "planned")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Give numbers of runs, or --job NAME for all runs of a job that have not ended."),
        (["1", "--job", "sync"], "Give numbers of runs, or --job NAME"),
        (["1", "--kind", "tick"], "--kind and --dry-run choose among the runs of a job: add --job NAME."),
        (["--job", "snyc"], "did you mean default/sync?"),
        (["--job", "sync", "--kind", "other"], "'other' is not one of 'tick', 'backfill', 'manual'"),
    ],
)
def test_a_cancel_says_which_ones(ready: Folder, words: list[str], message: str) -> None:
    assert message in ready("runs", "cancel", *words, code=2).stderr


def test_the_runs_of_a_cancelled_job(ready: Folder) -> None:
    """What has not started will not start: so many, and what becomes of them."""
    ready("jobs", "trigger", "sync")
    said = ready("jobs", "cancel", "sync").stdout.splitlines()
    assert said == [
        "default/sync: cancelled.",
        "1 run that has not started will not start either: it is closed as cancelled when its turn comes,"
        " as is what waits for another try.",
    ]
    ready("jobs", "backfill", "acme/report", "--from", "2020-01-01", "--to", "2020-01-03")
    assert ready.json("jobs", "delete", "acme/report")["not_started"] == 2
    ready("apply", "-", given=JOBS.replace("name: sync", "name: much"), code=0)
    ready("jobs", "backfill", "much", "--from", "2026-01-01", "--to", "2026-03-01")
    assert (
        ready("jobs", "cancel", "much")
        .stdout.splitlines()[1]
        .startswith("1,000 or more runs that have not started will not start either: each is closed")
    )


def test_what_is_not_planned_is_not_called_next(ready: Folder) -> None:
    later = ready("jobs", "resume", "sync", shift_s=7200).stdout
    assert re.fullmatch(
        r"default/sync: unchanged \(it is active\); nobody has planned its tick of 20\S+Z yet:"
        r" is a scheduler running\? fleetcron nodes\.\n",
        later,
    )


@pytest.mark.parametrize("words", [["cancel"], ["cancel", "x"], ["replay", "0"], ["cancel", "1", "--reason", " "]])
def test_what_is_no_run_is_told(ready: Folder, words: list[str]) -> None:
    assert "Usage: fleetcron runs" in ready("runs", *words, code=2).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["runs", "cancel", "1", "sync"], "'sync' is not the number of a run, such as 812. Numbers are in: fleetcron"
         " runs --job sync"),
        (["runs", "show", "acme/report"], "Numbers are in: fleetcron runs --job acme/report"),
        (["dead", "show", "sync"], "Numbers are in: fleetcron runs --job sync"),
        (["runs", "replay", "0"], "'0' is not the number of a run, such as 812. Numbers are in: fleetcron runs\n"),
        (["runs", "log", "9" * 30], "is not the number of a run"),
        (["runs", "show", "\x1b[31mx"], r"'\x1b[31mx' is not the number of a run"),
        (["runs", "12"], "There is no command '12'. To show one: fleetcron runs show 12."),
        (["dead", "12"], "There is no command '12'. To show one: fleetcron dead show 12."),
        (["jobs", "acme/report"], "There is no command 'acme/report'. To show one: fleetcron jobs show acme/report."),
        (["runs", "shwo"], "There is no command 'shwo'. Did you mean show?"),
    ],
)  # fmt: skip
def test_what_is_written_instead_of_a_run(ready: Folder, words: list[str], said: str) -> None:
    assert said in ready(*words, code=2).stderr


def test_help_of_every_command(ready: Folder) -> None:
    for words in (
        ["jobs", "trigger"],
        ["jobs", "backfill"],
        ["runs", "cancel"],
        ["dead", "replay"],
        ["dead", "discard"],
    ):
        assert "--json" in ready(*words, "--help").stdout


def test_on_postgres_too(on_postgres: Folder) -> None:
    on_postgres("apply", "-f", "jobs.yaml")
    made = on_postgres.json("jobs", "trigger", "heartbeat", "--payload", json.dumps({"text": "ä"}))
    assert on_postgres.json("runs", "cancel", str(made["run_id"]))["runs"][0]["done"] == "cancelled"
    assert on_postgres.json("runs", "replay", str(made["run_id"]))["runs"][0]["done"] == "replayed"
    assert on_postgres.json("jobs", "backfill", "heartbeat", "--from", "1h", "--limit", "5000")["created"] > 0
    call = ("runs", "cancel", "--job", "heartbeat", "--kind", "backfill")
    found = on_postgres.json(*call, "--dry-run")["open"]
    assert on_postgres.json(*call, "--yes")["cancelled"] == found > 0
    assert on_postgres.json("jobs", "cancel", "heartbeat")["not_started"] == 1  # the one that was triggered
    assert on_postgres.json("dead", "discard", "--all", "--reason", "x", "--yes")["discarded"] == 0
    assert on_postgres.json("dead") == {"dead": [], "before": None}
    assert Path(on_postgres.path / "fleetcron.db").exists() is False
