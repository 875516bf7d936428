"""Two versions at work on the same tables, while the newer one brings its migration: nobody has to wait, nothing is
lost and nothing is done twice."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final
from unittest.mock import patch

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.store import migrations
from tests.faults.nursery import ROOT, Nursery, nursery
from tests.faults.work_fleet import COMMANDS, LOAD, Siege, create, rows_of
from tests.faults.work_stage import Sieges
from tests.proof.newer_node import VERSION, knows
from tests.services.guard import Guard
from tests.services.postgres import Template
from tests.soak.rounds import Soak

LOCKED_S: Final = 2.0  # how long a migration may keep others waiting
ROLLS: Final = 5  # deploys of the long suite, on each store


@pytest.fixture(scope="session")
def newer(guard: Guard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Where nodes of the next version are born."""
    with nursery(guard, tmp_path_factory.mktemp("newer"), "tests.proof.newer_node", waits=False) as found:
        yield found


class Probe:
    """Somebody who wants to look at runs and leases all the time, and notes how long that took."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.longest_s = 0.0
        self.looks = 0

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        look = self._file if self._url.startswith("sqlite") else self._server
        task = asyncio.create_task(look())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _server(self) -> None:
        connection = await asyncpg.connect(self._url, server_settings={"search_path": "fleetcron"})
        try:
            while True:
                began = monotonic()
                await connection.execute("SELECT * FROM runs LIMIT 1; SELECT * FROM leases LIMIT 1")
                self._noted(began)
                await asyncio.sleep(0.01)
        finally:
            connection.terminate()

    async def _file(self) -> None:
        """A writer: whoever reads a SQLite file waits for nobody."""

        def write() -> None:
            path = self._url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")

        while True:
            began = monotonic()
            await asyncio.to_thread(write)
            self._noted(began)
            await asyncio.sleep(0.01)

    def _noted(self, began: float) -> None:
        self.looks += 1
        self.longest_s = max(self.longest_s, monotonic() - began)


def rolled(siege: Siege, older: Nursery, newer: Nursery, then: "Older | None" = None) -> Probe:
    """Two old nodes are replaced by two new ones, the first of which changes the tables under work. `then` is the code
    that makes the tables and the jobs, if it is not ours."""
    probe = Probe(siege.url)

    async def scenario() -> None:
        siege.cradle = older
        if then is None:
            await create(siege.url, [*LOAD, *COMMANDS])
        else:
            then.create(siege.url)
        old = [siege.survivor(f"old-{number}", isolation="inline", slots=4) for number in range(2)]
        for member in old:
            await siege.begun(2, node=member.name)
        siege.cradle = newer
        async with probe.looking():
            for number, member in enumerate(old):
                siege.survivor(f"new-{number}", isolation=("inline", "host")[number], slots=4)
                await siege.begun(2, node=f"new-{number}")
                for each in old[number:]:  # the old ones go on with the new tables
                    await siege.begun(len(siege.said("start", node=each.name)) + 2, node=each.name)
                await siege.stops(member)
        with patch.object(migrations, "known", knows):  # an old one would be told that the tables are newer
            await siege.heals()

    asyncio.run(scenario())
    return probe


def check(siege: Siege, probe: Probe) -> None:
    verdict = siege.check()
    print(f"the longest of {probe.looks} looks took {probe.longest_s:.2f} s")
    assert verdict.attempts["lost"] == 0  # no extra attempt
    assert verdict.events["worker_lost"] == verdict.events["finish_refused"] == 0
    for member in siege.members.values():
        assert [line for line in member.lines() if "everything is stopped" in line] == []
    assert probe.looks > 10
    assert probe.longest_s <= LOCKED_S


@pytest.mark.parametrize("store", [pytest.param("sqlite", marks=pytest.mark.soak), "postgres"])
def test_a_newer_version_changes_the_tables_under_work(
    store: str, newer: Nursery, request: pytest.FixtureRequest
) -> None:
    """S0-4, S3-18: a rolling deploy of two versions, with a migration in the middle."""
    siege: Siege = request.getfixturevalue(f"{store}_siege")
    probe = rolled(siege, siege.cradle, newer)
    check(siege, probe)
    found = rows_of(siege.url, "SELECT name, program FROM migrations ORDER BY number")
    assert (found[-1]["name"], found[-1]["program"]) == ("colours", VERSION)
    assert len({row["program"] for row in found}) == 2


_CREATE: Final = """
import asyncio, sys
from tests.faults.work_fleet import COMMANDS, LOAD, create
asyncio.run(create(sys.argv[1], [*LOAD, *COMMANDS]))
"""


@dataclass
class Older:
    commit: str
    cradle: Nursery
    folder: Path

    def create(self, url: str) -> None:
        path = os.pathsep.join([str(self.folder / "src"), str(self.folder)])
        environment = {**os.environ, "PYTHONPATH": path}
        subprocess.run([sys.executable, "-c", _CREATE, url], cwd=self.folder, env=environment, check=True)


@pytest.fixture(scope="session")
def oldest(guard: Guard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Older]:
    """The oldest commit whose tables this version can change into its own, and where its nodes are born."""
    commit = next(iter(fitting()), None)
    if commit is None:
        pytest.fail("no older version that fits is in the history of this checkout: fetch it (git fetch --unshallow)")
    folder = tmp_path_factory.mktemp("oldest")
    archive = subprocess.run(["git", "archive", commit, "src", "tests"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    with nursery(guard, folder, "tests.faults.work_node", waits=False, root=folder) as found:
        yield Older(commit[:8], found, folder)


def fitting(most: int = 200) -> Iterator[str]:
    """Oldest first: its migrations are the first of ours, word for word, and its nodes are asked as ours are."""
    commits = git("log", f"-{most}", "--format=%H", "--reverse").split()
    ours = {path: (ROOT / path).read_text() for path in tracked("HEAD")}
    asked = (ROOT / "tests/faults/work_node.py").read_text().partition("class Wish")[2].partition("def config")[0]
    for commit in commits[:-1]:
        theirs = tracked(commit)
        if not theirs or "tests/faults/work_node.py" not in git("ls-tree", "-r", "--name-only", commit, "tests/faults"):
            continue
        node = git("show", f"{commit}:tests/faults/work_node.py")
        same = all(path in ours and git("show", f"{commit}:{path}") == ours[path] for path in theirs)
        if same and node.partition("class Wish")[2].partition("def config")[0] == asked:
            yield commit


def tracked(commit: str) -> list[str]:
    return git("ls-tree", "-r", "--name-only", commit, "src/fleetcron/store/migrations").split()


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=False, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_deploys_from_an_older_version(
    store: str, oldest: Older, newer: Nursery, postgres18_template: Template, tmp_path: Path, soak: Soak
) -> None:
    """The old nodes are really old: their whole code is."""
    sieges = Sieges(store, oldest.cradle, tmp_path, postgres18_template.copy if store == "postgres" else None)
    suite = soak.suite("rolling deploys of two versions", store, goal={"deploy": ROLLS}, seed=0)
    suite.notes = [f"from the code of commit {oldest.commit} to this one with one more migration"]
    for _ in suite.rounds(ROLLS):
        with sieges.begun() as siege:
            probe = rolled(siege, oldest.cradle, newer, oldest)
            suite.over({"deploy": 1, "migration under load": 1}, siege.judged())
            check(siege, probe)
    suite.check()
