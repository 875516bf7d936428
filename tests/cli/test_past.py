"""`fleetcron runs`, `ledger`, `events`, `nodes`, `migrate`, `config`: pages, filters, stable keys."""

import re
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import EXAMPLES
from tests.cli.folder import Folder

EVERY = "jobs: [{name: %s, schedule: {every: 1m}, run: {command: [x]}, misfire: %s, jitter: %s}]"


@pytest.fixture
def with_past(fleetcron: Folder, quick: Folder) -> Folder:
    """Two jobs that stood still for ten minutes, and were planned then. No worker has seen them yet."""
    quick("apply", "-", given=EVERY % ("skips", "skip", "0s"), shift_s=-630)
    quick("apply", "-", given=EVERY % ("all", "all", "30s"), shift_s=-630)
    with fleetcron.serving("--log-level", "debug", command="scheduler") as node:
        node.until("2 jobs planned")
        node.stop()
    return quick


def test_the_past_in_pages(with_past: Folder) -> None:
    fleetcron = with_past
    first = fleetcron.json("runs", "--job", "all", "--limit", "4")
    assert first.keys() == {"runs", "before", "planned_later"}
    keys = {
        *(
            "run_id",
            "tenant",
            "name",
            "job_id",
            "pool",
            "scheduled_for",
            "run_after",
            "state",
            "kind",
            "lane",
            "covers",
        ),
        *("window", "created_at", "started_at", "finished_at", "delay_ms", "duration_ms", "attempt", "failures"),
        *(
            "losses",
            "round",
            "reason",
            "covered_by",
            "worked_by",
            "asked_by",
            "node_id",
            "progress",
            "note",
            "asked_to_stop",
        ),
        *("next_try", "waiting", "revision", "idempotency_key"),
    }
    assert all(run.keys() == keys for run in first["runs"])
    rest = fleetcron.json("runs", "--job", "all", "--before", str(first["before"]))
    assert rest["before"] is None
    numbers = [sorted(run["run_id"] for run in page["runs"]) for page in (first, rest)]
    assert (first["before"], len(numbers[0])) == (numbers[0][0], 4)
    assert numbers[1][-1] < numbers[0][0]  # pages go by number
    for page in (first, rest):
        ticks = [run["scheduled_for"] for run in page["runs"]]
        assert ticks == sorted(ticks, reverse=True)
    shown = fleetcron("runs", "--limit", "4").stdout
    assert f"4 shown, there are more: --before {first['before']}, or a higher --limit." in shown
    assert "s jitter)" in shown
    caught_up = [run for run in (*first["runs"], *rest["runs"]) if run["lane"] == "catchup"]
    assert len(caught_up) in (9, 10)
    waiting = fleetcron("runs", "--job", "all", "--to", "5m").stdout
    assert "What is due waits for a worker with a free slot." in waiting
    assert fleetcron.json("runs", "--from", "2020-01-01", "--to", "2020-01-02T00:00:00Z")["runs"] == []
    assert "No run is like that." in fleetcron("runs", "--state", "dead").stdout

    ledger = fleetcron.json("ledger", "--answer", "skipped")
    assert ledger.keys() == {"ledger", "before"}
    [entry] = ledger["ledger"]
    assert entry.keys() == {
        *("entry_id", "tenant", "name", "job_id", "from", "to", "ticks", "answer", "reason", "words"),
        *("covered_by", "noted_at", "revision"),
    }
    assert (entry["name"], entry["reason"]) == ("skips", "misfire")
    assert fleetcron.json("ledger", "--state", "missed")["ledger"] == []
    assert "No tick without a run is like that; runs that were" in fleetcron("ledger", "--tenant", "acme").stdout

    events = fleetcron.json("events", "--limit", "2")
    assert events["events"][0].keys() == {
        *("event_id", "at", "kind", "count", "tenant", "name", "node_id", "by", "detail"),
    }
    assert fleetcron.json("events", "--kind", "job_created")["events"][0]["name"] == "all"
    older = fleetcron.json("events", "--before", str(events["before"]))["events"]
    assert older[-1]["kind"] == "schema_migrated"


def test_the_local_time_of_the_job_that_was_asked_for(quick: Folder) -> None:
    given = "jobs: [{name: gone, schedule: {at: '2020-01-01T09:00', timezone: Asia/Tokyo}, run: {command: [x]}}]"
    quick("apply", "-", given=given)
    assert "LOCAL" not in quick("ledger").stdout
    assert "2020-01-01T00:00:00Z  2020-01-01 09:00+09:00" in quick("ledger", "--job", "gone").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("runs", "--from", "yesterday"),
            "error: --from: 'yesterday' is not an instant\nhint: write it as 2027-01-01T",
        ),
        (("runs", "--limit", "0"), "0 is not in the range"),
        (("events", "--kind", "job_payed"), "There is no kind of event 'job_payed'. There are: job_created, "),
        (("ledger", "--answer", "lost"), "'lost' is not one of"),
        (("jobs", "--database", "mysql://me:secret@db/jobs"), "error: --database: there is no store for mysql://"),
        (("config", "show", "--config", "none.toml"), "error: none.toml: cannot be read: No such file or directory"),
    ],
)
def test_mistakes(quick: Folder, arguments: tuple[str, ...], said: str) -> None:
    quick("migrate")
    told = quick(*arguments, code=2)
    assert said in told.stderr
    assert "secret" not in told.stderr


def test_what_others_wrote_cannot_command_the_terminal(quick: Folder) -> None:
    quick("apply", str(EXAMPLES), "--by", "\x1b]0;owned\x07ann\u009b31m")
    for arguments in (("events",), ("jobs", "history", "heartbeat"), ("jobs", "show", "heartbeat")):
        said = quick(*arguments).stdout
        assert not {"\x1b", "\x07", "\u009b"} & set(said)
        assert "\\x1b]0;owned\\x07ann" in said


def test_a_name_that_is_no_text_spoils_nothing(quick: Folder) -> None:
    quick("apply", str(EXAMPLES))
    quick("jobs", "pause", "heartbeat", "--by", "\udcff")
    assert "?" in quick("events").stdout
    assert "?" in quick("jobs", "history", "heartbeat").stdout


def test_migrate(quick: Folder) -> None:
    assert re.search(r"^0001_memory +not applied yet$", quick("migrate", "--status").stdout, re.MULTILINE)
    assert list(quick.path.iterdir()) == []
    assert quick("migrate").stdout.startswith("applied 0001_memory\n")
    assert "Nothing to do: the tables are at version" in quick("migrate").stdout
    told = quick.json("migrate", "--status")
    assert told.keys() == {"applied", "pending", "done"}
    assert [each["name"] for each in told["applied"]][:1] == ["memory"]
    statements = quick("migrate", "--sql").stdout
    with sqlite3.connect(Path(quick.path) / "by-hand.db") as connection:
        connection.executescript(statements)
    connection.close()
    assert "There is no job yet." in quick("jobs", "--database", "sqlite:///by-hand.db").stdout
    assert "CREATE SCHEMA IF NOT EXISTS fleetcron" in quick("migrate", "--sql", "--database", "postgres://db/x").stdout


def test_tables_of_another_program(quick: Folder) -> None:
    quick("migrate")
    with sqlite3.connect(quick.path / "fleetcron.db") as connection:
        connection.execute("INSERT INTO migrations VALUES (9999, 'later', 'x', 0, '9.9')")
    connection.close()
    for arguments in (("jobs",), ("apply", str(EXAMPLES)), ("apply", str(EXAMPLES), "--dry-run"), ("serve",)):
        said = (Folder(quick.path) if arguments == ("serve",) else quick)(*arguments, code=2).stderr
        assert said.startswith("error: the tables are newer (9999) than this program")
        assert "hint: upgrade fleetcron on this machine" in said


def test_config_show(quick: Folder) -> None:
    quick.write("fleetcron.toml", '[coordination]\nlease_ttl = "20s"\n')
    url = "postgresql://me:hush-hush@db/jobs"
    told = quick("config", "show", FLEETCRON_DATABASE_URL=url, FLEETCRON_NODE__REGION="eu").stdout
    assert "hush" not in told
    rows = [line.split() for line in told.splitlines()]
    assert ["store.url", "postgresql://me:***@db/jobs", "FLEETCRON_DATABASE_URL"] in rows
    assert ["coordination.lease_ttl", "20s", "fleetcron.toml"] in rows
    assert ["node.region", "eu", "FLEETCRON_NODE__REGION"] in rows
    assert quick.json("config", "show")["settings"][0].keys() == {"name", "value", "source"}
    wrong = quick("config", "show", FLEETCRON_NODE__REGIO="eu", FLEETCRON_STORE__DEADLINE="never", code=2).stderr
    assert "error: environment: FLEETCRON_NODE__REGIO: is not a setting" in wrong
    assert "error: environment: FLEETCRON_STORE__DEADLINE: 'never' is not a duration" in wrong
