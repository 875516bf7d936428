"""A database that is full, read-only, held, broken or away: a message that helps, the right exit code, no flood."""

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import EXAMPLES
from tests.cli.folder import Folder
from tests.services.proxy import proxy_to

AWAY = "postgresql://me:secret@127.0.0.1:1/jobs"


@pytest.mark.parametrize(
    "arguments",
    [("jobs",), ("jobs", "show", "a"), ("runs",), ("nodes",), ("migrate",), ("apply", str(EXAMPLES), "--dry-run")],
)
def test_a_database_that_is_away_is_exit_code_3(quick: Folder, arguments: tuple[str, ...]) -> None:
    said = quick(*arguments, code=3, DATABASE_URL=AWAY)
    assert said.stdout == ""
    assert said.stderr.startswith("error: PostgreSQL at postgresql://me:***@127.0.0.1:1/jobs cannot be reached")
    assert "hint: is it running, and is the address in the URL right?" in said.stderr


def test_mistakes_are_told_even_if_the_database_is_away(quick: Folder) -> None:
    said = quick("apply", "-", given="jobs: [{name: a}]", code=2, DATABASE_URL=AWAY)
    assert "/jobs/0/schedule: is missing" in said.stderr


def test_wrong_passwords_and_databases(quick: Folder, postgres18_database: str) -> None:
    head, _, rest = postgres18_database.rpartition("@")
    wrong = f"{head.rpartition(':')[0]}:wrong@{rest}"
    assert "refuses the user or the password" in quick("jobs", "--database", wrong, code=2).stderr
    absent = f"{postgres18_database}_not"
    assert "hint: create the database, or name another one" in quick("migrate", "--database", absent, code=2).stderr
    said = quick("jobs", "--database", postgres18_database, code=2).stderr
    assert re.fullmatch(
        "error: the tables do not exist, this program needs version [0-9]+ of them\nhint: run `fleetcron migrate`\n",
        said,
    )


def test_without_the_driver_the_extra_is_named(tmp_path: Path) -> None:
    """The .venv of a clone is made by uv and has no pip: both ways are told."""
    script = (
        "import sys; sys.modules['asyncpg'] = None\nfrom fleetcron.cli import main\n"
        f"for command in ('jobs', 'serve'):\n    sys.argv = ['fleetcron', command, '--database', '{AWAY}']\n"
        "    try: main()\n    except SystemExit as ended: print(command, ended.code, flush=True)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "jobs 2\nserve 2\n"
    jobs, serve = done.stderr.split("error: ")[1:]
    assert jobs == serve
    assert jobs.startswith("the PostgreSQL driver is not installed\nhint: install the extra fleetcron[p")
    for way in ("`pip install 'fleetcron[postgres]'`", "`uv pip install 'fleetcron[postgres]'`", "`make setup`"):
        assert way in jobs


def test_a_folder_that_is_not_there_and_a_file_that_is_no_database(quick: Folder) -> None:
    missing = quick("apply", str(EXAMPLES), "--database", "sqlite:///none/jobs.db", code=3).stderr
    assert f"there is no folder {quick.path}/none" in missing
    assert "hint: create the folder" in missing
    quick.write("fleetcron.db", "this is a letter, not a database; " * 40)
    for command in (("jobs",), ("apply", str(EXAMPLES)), ("migrate",)):
        said = quick(*command, code=2).stderr
        assert "is damaged, or is not a database" in said
        assert "hint: restore it from a backup" in said


def test_a_database_that_another_process_holds(quick: Folder) -> None:
    quick("apply", str(EXAMPLES))
    holder = sqlite3.connect(quick.path / "fleetcron.db", isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        said = quick("jobs", "pause", "heartbeat", code=3, FLEETCRON_STORE__DEADLINE="100ms").stderr
        assert "is held by another process" in said
        assert "default/heartbeat" in quick("jobs").stdout  # reading goes on
    finally:
        holder.close()


# Nothing is forbidden to root, so whoever is root becomes nobody, after everything is imported that it could not read.
AS_NOBODY = """
import contextlib, os, pwd, sys
import fleetcron.cli.serve, fleetcron.cli.steering
from fleetcron.cli import main
wanted, sys.argv = sys.argv, ["fleetcron", "jobs"]
with contextlib.suppress(SystemExit):
    main()
if os.getuid() == 0:
    os.setgid(pwd.getpwnam("nobody").pw_gid)
    os.setuid(pwd.getpwnam("nobody").pw_uid)
sys.argv = wanted
main()
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that every user can enter, other than those of pytest."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="fleetcron-") as name:
        yield Path(name)


@pytest.mark.parametrize("command", [("jobs", "pause", "heartbeat"), ("serve",)], ids=" ".join)
def test_a_database_that_may_not_be_written(quick: Folder, open_folder: Path, command: tuple[str, ...]) -> None:
    quick("apply", str(EXAMPLES), "--database", f"sqlite:///{open_folder / 'fleetcron.db'}")
    open_folder.chmod(0o555)
    (open_folder / "fleetcron.db").chmod(0o444)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, *command], cwd=open_folder, capture_output=True, text=True, check=False
    )
    open_folder.chmod(0o755)
    assert done.returncode == 3, done.stderr
    assert "fleetcron.db cannot be written" in done.stderr
    assert "hint: give this user the right to write to" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_outage_is_two_lines_and_no_flood(fleetcron: Folder, postgres18_database: str) -> None:
    """One that lasts longer than the leases: it says so, says when it is over, and plans again by itself."""
    fleetcron.write("jobs.yaml", "jobs: [{name: a, schedule: {every: 1s}, run: {command: [x]}}]")
    short = {
        "FLEETCRON_COORDINATION__LEASE_TTL": "1500ms",
        "FLEETCRON_COORDINATION__HEARTBEAT": "200ms",
        "FLEETCRON_COORDINATION__MARGIN": "300ms",
        "FLEETCRON_COORDINATION__NODE_TTL": "1500ms",
        "FLEETCRON_STORE__DEADLINE": "500ms",
        "FLEETCRON_SCHEDULER__LOOKAHEAD": "2s",
    }

    async def scenario() -> str:
        async with proxy_to(postgres18_database) as proxy:
            loop = asyncio.get_running_loop()
            with fleetcron.serving("-f", "jobs.yaml", "--log-level", "debug", "--database", proxy.url, **short) as node:

                async def until(text: str) -> None:
                    await loop.run_in_executor(None, node.until, text)

                await until("jobs planned")
                proxy.cut()
                await until("planning waits")
                await until("could not renew in time")
                proxy.heal()
                await until("planning goes on")
                await until("jobs planned")
                return await loop.run_in_executor(None, node.stop)

    said = asyncio.run(scenario())
    assert said.count("planning waits") == 1
    assert said.count("planning goes on") == 1
    assert said.count("cannot reach the store") == 1


def test_a_full_disk_says_so(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: SQLite cannot grow its file."""
    script = 'ulimit -f 40; exec "$0" -m fleetcron apply -f "$1"'
    done = subprocess.run(
        ["/bin/sh", "-c", f"trap '' XFSZ; {script}", sys.executable, str(EXAMPLES)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "cannot be read or written" in done.stderr or "cannot grow" in done.stderr
    assert "Traceback" not in done.stderr
