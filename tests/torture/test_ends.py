"""How a torture ends when somebody ends it: nothing is left, or it can be removed."""

import asyncio
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fleetcron.executors.process_tree import descendants
from tests.cli.folder import Folder
from tests.faults.fleet import until
from tests.services.guard import alive
from tests.services.own_postgres import OwnPostgres
from tests.torture.places import ask, schemas, sqlite_in


def ended(
    url: str, fleetcron: Folder, number: signal.Signals, meanwhile: Callable[[str, int], None]
) -> tuple[int, str]:
    """A torture that a signal ends while its nodes are hurt: its exit code and its name. Its nodes are gone."""
    arguments = ("--database", url, "--for", "300s", "--nodes", "2", "--rate", "1", "--seed", "3")
    with fleetcron.serving(*arguments, command="torture") as torture:
        made = re.search(r"fleetcron_torture_\w{12}", torture.until("Makes the"))
        assert made
        torture.until("the nodes are hurt")
        meanwhile(made[0], torture.process.pid)
        children = descendants(torture.process.pid)
        torture.process.send_signal(number)
        code = torture.process.wait(20)
        assert len(children) >= 2
        asyncio.run(until(lambda: not any(alive(child) for child in children)))
        return code, made[0]


def test_ctrl_c_leaves_nothing_on_postgres(
    fleetcron: Folder, quick: Folder, postgres18_database: str, evidence: Path
) -> None:
    """And whoever clears away leaves it alone as long as it runs."""

    def clean(name: str, pid: int) -> None:
        said = quick("torture", "--database", postgres18_database, "--clean", "--yes").stdout
        assert f"the schema {name} is in use by process {pid}" in said
        assert schemas(postgres18_database) == {name}

    code, _ = ended(postgres18_database, fleetcron, signal.SIGINT, clean)
    assert code == 128 + signal.SIGINT
    assert schemas(postgres18_database) == set()
    assert list(evidence.iterdir()) == []


@pytest.mark.soak
def test_a_request_to_stop_leaves_nothing_on_sqlite(fleetcron: Folder, tmp_path: Path, evidence: Path) -> None:
    code, _ = ended(sqlite_in(tmp_path), fleetcron, signal.SIGTERM, lambda *_: None)
    assert code == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
    assert list(evidence.iterdir()) == []


def test_kill_9_leaves_what_can_be_removed(fleetcron: Folder, tmp_path: Path, evidence: Path) -> None:
    """The nodes die with the command. Other files are not touched, whatever they are called."""
    database, others = sqlite_in(tmp_path), {"jobs.db", "fleetcron_torture_mine.db", "fleetcron.db"}
    for other in others:
        (tmp_path / other).touch()
    code, name = ended(database, fleetcron, signal.SIGKILL, lambda *_: None)
    assert code == -signal.SIGKILL
    assert {path.name.partition(".")[0] for path in evidence.iterdir()} == {name}
    asked = fleetcron("torture", "--database", database, "--clean", given="n\n", code=1)
    assert f"the file {tmp_path / name}.db, left by process" in asked.stdout
    assert f"on {os.uname().nodename}" in asked.stdout
    assert (tmp_path / f"{name}.db").exists()
    removed = fleetcron.json("torture", "--database", database, "--clean", "--yes")
    assert removed == {"removed": [name], "running": []}
    assert {path.name for path in tmp_path.iterdir()} == others
    assert list(evidence.iterdir()) == []


@pytest.mark.soak
def test_kill_9_leaves_a_schema_that_can_be_removed(
    fleetcron: Folder, postgres18_database: str, evidence: Path
) -> None:
    others = {"fleetcron", "fleetcron_torture_mine"}
    ask(postgres18_database, *(f"CREATE SCHEMA {other}" for other in others))
    code, name = ended(postgres18_database, fleetcron, signal.SIGKILL, lambda *_: None)
    assert code == -signal.SIGKILL
    assert schemas(postgres18_database) == {name, *others}
    said = fleetcron("torture", "--database", postgres18_database, "--clean", given="y\n").stdout
    assert f"the schema {name}, left by process" in said
    assert schemas(postgres18_database) == others
    assert list(evidence.iterdir()) == []


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("comes_back", [True, False], ids=["comes back", "stays away"])
def test_a_database_that_goes_away(
    fleetcron: Folder, quick: Folder, own_postgres: OwnPostgres, evidence: Path, comes_back: bool
) -> None:
    """Judged like everything else if it comes back; otherwise it says what is left, and how to remove it."""
    with fleetcron.serving("--database", own_postgres.url, "--for", "8s", command="torture") as torture:
        torture.until("the nodes are hurt")
        own_postgres.kill()
        if comes_back:
            own_postgres.start()
        else:
            torture.until("cannot be reached", patience_s=60)  # it says what it waits for
        code = torture.process.wait(300)
    said = "".join(torture.lines)
    if comes_back:
        assert (code, "All promises hold." in said) == (0, True), said
    else:
        assert (code, "could not be removed" in said, "--clean" in said) == (3, True, True), said
        own_postgres.start()
        quick("torture", "--database", own_postgres.url, "--clean", "--yes")
    assert schemas(own_postgres.url) == set()
    assert list(evidence.iterdir()) == []
