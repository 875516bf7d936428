"""Fixtures of the tests in which workers work: `siege` on each store, `sqlite_siege`, `postgres_siege`; `both_sieges`
for a test that waits more than it computes, and plays on both at the same time. For those that need one after the
other: `sieges` on each store, and each alone."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.nursery import Nursery, nursery
from tests.faults.work_fleet import Siege
from tests.services.guard import Guard
from tests.services.postgres import Template
from tests.soak.rounds import FOLDER


@pytest.fixture(scope="session")
def cradle(guard: Guard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with nursery(guard, tmp_path_factory.mktemp("nodes"), "tests.faults.work_node", waits=False) as found:
        yield found


SQLITE, POSTGRES = "sqlite_file_url", "postgres18_url"


def rarely(store: str) -> pytest.MarkDecorator:
    """For a test that has `siege`: on this store only in `make soak`."""
    stores = [pytest.param(each, marks=pytest.mark.soak if each == store else ()) for each in (SQLITE, POSTGRES)]
    return pytest.mark.parametrize("siege", stores, ids=["sqlite", "postgres"], indirect=True)


@pytest.fixture(params=[SQLITE, POSTGRES], ids=["sqlite", "postgres"])
def siege(request: pytest.FixtureRequest, cradle: Nursery, tmp_path: Path) -> Iterator[Siege]:
    found = Siege(str(request.getfixturevalue(request.param)), tmp_path, cradle)
    yield found
    found.end()


@pytest.fixture
def sqlite_siege(cradle: Nursery, sqlite_file_url: str, tmp_path: Path) -> Iterator[Siege]:
    found = Siege(sqlite_file_url, tmp_path, cradle)
    yield found
    found.end()


@pytest.fixture
def postgres_siege(cradle: Nursery, postgres18_url: str, tmp_path: Path) -> Iterator[Siege]:
    found = Siege(postgres18_url, tmp_path, cradle)
    yield found
    found.end()


@pytest.fixture
def both_sieges(
    cradle: Nursery, sqlite_file_url: str, postgres18_url: str, tmp_path: Path
) -> Iterator[tuple[Siege, Siege]]:
    """On SQLite and on PostgreSQL."""
    found = Siege(sqlite_file_url, tmp_path / "sqlite", cradle), Siege(postgres18_url, tmp_path / "postgres", cradle)
    for each in found:
        each.folder.mkdir()
    yield found
    for each in found:
        each.end()


@dataclass
class Sieges:
    """One siege after the other, each with a database of its own."""

    store: str
    cradle: Nursery
    folder: Path
    databases: Callable[[], AbstractContextManager[str]] | None = None  # without: files in the folder

    @contextmanager
    def begun(self) -> Iterator[Siege]:
        folder = self.folder / f"siege-{len(list(self.folder.glob('siege-*')))}"
        folder.mkdir()
        with self.databases() if self.databases else nullcontext(f"sqlite:///{folder / 'jobs.db'}") as url:
            siege = Siege(url, folder, self.cradle)
            try:
                yield siege
            except BaseException:
                siege.end()
                _keep(siege)
                raise
            finally:
                siege.end()


def _keep(siege: Siege) -> None:
    """What the nodes and the handlers said, for whoever has to understand it: pytest throws its folders away."""
    kept = FOLDER / "bad" / f"{siege.folder.parent.name}-{siege.folder.name}-{os.getpid()}"
    shutil.copytree(siege.folder, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("run-*", "any-*", "job-*"))


@pytest.fixture
def postgres_sieges(cradle: Nursery, tmp_path: Path, store_template18: Template) -> Sieges:
    return Sieges("postgres", cradle, tmp_path, store_template18.copy)


@pytest.fixture
def sqlite_sieges(cradle: Nursery, tmp_path: Path) -> Sieges:
    return Sieges("sqlite", cradle, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def sieges(request: pytest.FixtureRequest) -> Sieges:
    found = request.getfixturevalue(f"{request.param}_sieges")
    assert isinstance(found, Sieges)
    return found
