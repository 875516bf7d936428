"""The named statements: what a file must be, and that the package has no half ones."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from fleetcron.errors import StoreError
from fleetcron.store.statements import ENGINES, Statements, lopsided, parse, read
from tests.store.engines import opened

ROOT = Path(__file__).parents[2]


def test_every_statement_exists_for_both_engines() -> None:
    assert lopsided() == []
    assert len(Statements.for_engine("sqlite")) > 10


def test_how_the_latest_runs_ended_is_found_by_index(tmp_path: Path) -> None:
    """It is asked every two seconds, of every job that fails: the whole history would be read each time. Each index is
    of some kinds of runs only."""

    async def scenario() -> None:
        async with opened(f"sqlite:///{tmp_path}/jobs.db"):
            pass

    asyncio.run(scenario())
    statement = Statements.for_engine("sqlite")["runs_recent_ends"]
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        found = connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", dict.fromkeys(statement.parameters, 1))
        plan = [row[3] for row in found]
    assert [line for line in plan if line.startswith("SEARCH")] == [
        "SEARCH r USING INDEX runs_one_per_tick (job_id=?)",
        "SEARCH r USING INDEX runs_manual (job_id=?)",
    ]
    assert not any("SCAN r" in line for line in plan)


def test_parameters_become_numbers_for_postgres() -> None:
    text = (
        "-- Find jobs: as :they are.\n"
        "SELECT ':no', \":no\", body::text, $$ :no $$, $tag$ :no $$ :no $tag$ -- :no\n"
        "/* :no */ FROM jobs WHERE name = :name AND tenant = :tenant OR name <> :name;\n"
        "-- the end; really\n"
    )
    postgres, sqlite = parse("postgres", "jobs_find", text), parse("sqlite", "jobs_find", text)
    assert postgres.purpose == "Find jobs: as :they are."
    assert postgres.parameters == sqlite.parameters == ("name", "tenant")
    assert "name = $1 AND tenant = $2 OR name <> $1" in postgres.sql
    assert "name = :name AND tenant = :tenant OR name <> :name" in sqlite.sql
    assert "':no', \":no\", body::text, $$ :no $$, $tag$ :no $$ :no $tag$ -- :no\n/* :no */" in postgres.sql
    assert ";" not in postgres.sql.partition("--")[0]


def test_only_sqlite_takes_several_in_a_row() -> None:
    text = "-- Move.\nDELETE FROM a WHERE x = ';';\nDELETE FROM b WHERE y = :y;\nSELECT :z\n"
    moved = parse("sqlite", "a_move", text)
    assert moved.before == ("DELETE FROM a WHERE x = ';'", "DELETE FROM b WHERE y = :y")
    assert moved.sql == "SELECT :z"
    assert moved.parameters == ("y", "z")
    with pytest.raises(StoreError, match=r"a_move\.sql: one statement in a file"):
        parse("postgres", "a_move", text)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a", "SELECT 1\n", "the first line must say what the statement is for"),
        ("a", "-- \nSELECT 1\n", "the first line must say what the statement is for"),
        ("a", "-- Nothing.\n\n", "there is no statement"),
        ("a", "-- Nothing.\n;\n", "there is no statement"),
        ("notify", "-- Tell.\nSELECT 1\n", "this name is reserved"),
        ("ddl", "-- Change.\nSELECT 1\n", "this name is reserved"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_is_not_a_statement(engine: str, name: str, text: str, words: str) -> None:
    with pytest.raises(StoreError, match=rf"{name}\.sql: {words}"):
        parse(engine, name, text)


def test_one_text_for_a_name() -> None:
    text = "-- One.\nSELECT 1"
    with pytest.raises(StoreError, match="in sql/shared and in sql/sqlite: jobs_find; keep one"):
        read("sqlite", {"jobs_find": text, "b": text}, {"jobs_find": text, "c": text})


def test_they_are_found_in_a_package_that_is_not_a_folder(tmp_path: Path) -> None:
    package = tmp_path / "fleetcron.zip"
    with zipfile.ZipFile(package, "w") as archive:
        for path in (ROOT / "src").rglob("*"):
            if path.suffix in (".py", ".sql"):
                archive.write(path, path.relative_to(ROOT / "src"))
    program = (
        "import fleetcron\n"
        "from fleetcron.store.statements import Statements\n"
        "from fleetcron.store.migrations import known\n"
        "print('fleetcron.zip' in fleetcron.__file__, len(Statements.for_engine('postgres')), len(known('sqlite')))"
    )
    env = {**os.environ, "PYTHONPATH": str(package)}
    argv = [sys.executable, "-c", program]
    answer = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    assert answer[0] == "True"
    assert int(answer[1]) == len(Statements.for_engine("postgres"))
    assert int(answer[2]) >= 1
