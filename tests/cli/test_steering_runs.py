"""What people do to runs from the command line: trigger, backfill, cancel, replay, discard; and the dead letters."""

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


def dead(folder: Folder, name: str = "sync", code: str = "boom") -> int:
    """A run that has failed for good, as a worker would have left it."""
    run_id = int(folder.json("jobs", "trigger", name)["run_id"])
    sql(folder, "DELETE FROM upcoming WHERE run_id = ?", run_id)
    ended = "state = 'dead', finished_ms = created_ms, attempt = 2, failures = 2"
    sql(folder, f"UPDATE runs SET {ended} WHERE run_id = ?", run_id)
    columns = "run_id, attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, log_bytes"
    sql(
        folder,
        f"INSERT INTO attempts ({columns}) VALUES (?, 2, 'w1', 1, 2, 'failed', ?, 'it\nbroke', 0)",
        run_id,
        code,
    )
    return run_id


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
        (["sync", "--payload", '{"a": NaN}'], "error: /payload/a: nan is not a JSON number"),
        (["sync", "--key", ""], "--key: write 1 to 200 characters"),
    ],
)
def test_what_cannot_be_triggered_says_why(ready: Folder, words: list[str], message: str) -> None:
    assert message in ready("jobs", "trigger", *words, code=2).stderr
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


# -- dead letters


def test_the_list_of_dead_letters(ready: Folder) -> None:
    assert ready("dead").stdout.startswith("No dead letters")
    first, second = dead(ready), dead(ready, "acme/report", "timeout")
    lines = ready("dead").stdout.splitlines()
    assert lines[0].split() == ["RUN", "JOB", "SCHEDULED", "FOR", "DIED", "ATTEMPTS", "ERROR"]
    assert lines[1].split()[:2] == [str(second), "acme/report"]
    assert lines[2].endswith(r"boom: it\x0abroke")
    [letter] = ready.json("dead", "--error", "boom")["dead"]
    assert letter.keys() == {
        *("run_id", "tenant", "name", "job_id", "type", "kind", "scheduled_for", "died_at", "attempt", "failures"),
        *("losses", "round", "outcome", "error", "node_id"),
    }
    assert (letter["run_id"], letter["error"]) == (first, {"code": "boom", "text": "it\nbroke"})

    def found(*words: str) -> list[int]:
        return [each["run_id"] for each in ready.json("dead", *words)["dead"]]

    assert found() == [second, first]
    assert found("--tenant", "acme") == found("--type", "report") == found("--job", "acme/report") == [second]
    assert found("--tenant", "acme", "--name", "report", "--since", "1h") == [second]
    assert found("--before", str(second)) == [first]
    assert found("--error", "other") == []
    assert ready.json("dead", "--limit", "1")["before"] == second
    assert "No dead letter is like that" in ready("dead", "--error", "other").stdout
    assert "did you mean default/sync" in ready("dead", "--job", "snyc", code=2).stderr


def test_dead_letters_are_replayed(ready: Folder) -> None:
    runs = [dead(ready), dead(ready), dead(ready, "acme/report", "timeout")]
    assert ready("dead", "replay", "--all", "--dry-run").stdout == "3 runs would be replayed.\n"
    assert [state(ready, run_id) for run_id in runs] == ["dead"] * 3
    assert ready("dead", "replay", str(runs[0])).stdout.split()[-1] == "replayed"
    done = ready.json("dead", "replay", "--tenant", "acme", "--error", "timeout")
    assert done == {"dead": 1, "can_be_replayed": 1, "replayed": 1, "dry_run": False}
    assert [state(ready, run_id) for run_id in runs] == ["planned", "dead", "planned"]
    more = [dead(ready, "acme/report"), dead(ready)]
    ready("jobs", "delete", "acme/report")
    said = ready("dead", "replay", "--all", "--limit", "1").stdout.splitlines()
    assert said == ["1 run replayed.", "1 run of deleted or cancelled jobs stays dead."]
    assert [state(ready, run_id) for run_id in (runs[1], *more)] == ["planned", "dead", "dead"]
    assert ready("dead", "replay", "--since", "1h").stdout.startswith("1 run replayed.")
    assert ready("dead", "replay", "--error", "other").stdout == "No dead letter is like that: nothing to replay.\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Which ones? Give numbers of runs, options such as --job NAME, or --all."),
        (["--all", "--error", "boom"], "--all and other options exclude each other."),
        (["1", "--all"], "Give numbers of runs, or options that choose them; not both."),
        (["1", "--error", "boom"], "Give numbers of runs, or options that choose them; not both."),
        (["sync"], "'sync' is not the number of a run, such as 812. Numbers are in: fleetcron runs --job sync"),
    ],
)
def test_a_replay_says_which_ones(ready: Folder, words: list[str], message: str) -> None:
    assert message in ready("dead", "replay", *words, code=2).stderr


def test_dead_letters_are_discarded(ready: Folder) -> None:
    run_id = dead(ready)
    assert "Missing option '--reason'" in ready("dead", "discard", str(run_id), code=2).stderr
    done = ready("dead", "discard", str(run_id), "--reason", "known bug", "--by", "eve")
    assert done.stdout.split() == [str(run_id), "default/sync", "discarded"]
    assert ready.json("dead")["dead"] == []
    assert state(ready, run_id) == "dead"
    assert re.search(r"\n  discarded     20\S+Z by eve: known bug\n", ready("dead", "show", str(run_id)).stdout)
    told = ready.json("runs", "show", str(run_id))["discarded"]
    assert (told.keys(), told["by"], told["reason"]) == ({"at", "by", "reason"}, "eve", "known bug")
    [event] = ready.json("events", "--kind", "run_discarded")["events"]
    assert (event["by"], event["detail"]) == ("eve", {"runs": [run_id], "reason": "known bug"})
    ready("dead", "discard", str(run_id), "--reason", "known bug")
    ready("runs", "replay", str(run_id))
    refused = ready("dead", "discard", str(run_id), "--reason", "known bug", code=1)
    assert "it is not over: only dead runs can be discarded" in refused.stdout


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
    assert on_postgres.json("dead") == {"dead": [], "before": None}
    assert Path(on_postgres.path / "fleetcron.db").exists() is False
