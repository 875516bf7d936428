"""PostgreSQL and SQLite as the store's own tests have them, a fleet of processes, and workers under siege."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.fleet import Fleet, fleet
from tests.faults.scene import Scene, opened
from tests.faults.work_patient import patients
from tests.faults.work_stage import (
    both_sieges,
    cradle,
    postgres_siege,
    postgres_sieges,
    siege,
    sieges,
    sqlite_siege,
    sqlite_sieges,
)
from tests.services.guard import Guard
from tests.services.postgres import Template
from tests.soak.rounds import soak
from tests.store.conftest import own_postgres, postgres18_url, sqlite_file_url, store_template18

__all__ = [
    "both_sieges", "cradle", "own_postgres", "patients", "postgres18_url", "postgres_siege", "postgres_sieges",
    "processes", "siege", "sieges", "soak", "sqlite_file_url", "sqlite_siege", "sqlite_sieges", "store_template18",
]  # fmt: skip


@pytest.fixture(scope="module")
def stage(store_template18: Template) -> Iterator[Scene]:
    with store_template18.copy() as url, opened(url) as found:
        yield found


@pytest.fixture
def scene(stage: Scene) -> Scene:
    stage.empty()
    return stage


@pytest.fixture
def processes(guard: Guard, postgres18_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """Scheduler processes on one PostgreSQL. Whatever happens, none of them is left."""
    with fleet(guard, postgres18_url, tmp_path) as found:
        yield found


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All of them on one xdist worker: processes that fight for two cores measure each other."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if item.path.parent == Path(__file__).parent:
                item.add_marker(pytest.mark.xdist_group("faults"))
