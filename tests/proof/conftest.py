"""The engines and the fleets of processes, as the other tests have them."""

from pathlib import Path

import pytest

from tests.faults.work_stage import cradle, postgres_siege, postgres_sieges, sqlite_siege, sqlite_sieges
from tests.proof.wrong_clocks import machines
from tests.soak.rounds import soak
from tests.store.conftest import own_postgres, postgres18_url, sqlite_file_url, sqlite_memory_url, store_template18

__all__ = [
    "cradle", "machines", "own_postgres", "postgres18_url", "postgres_siege", "postgres_sieges", "soak",
    "sqlite_file_url", "sqlite_memory_url", "sqlite_siege", "sqlite_sieges", "store_template18",
]  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fleets of processes on one xdist worker, together with those of tests/faults: they would measure each other."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if item.path.parent == Path(__file__).parent and {"cradle", "machines", "newer"} & set(item.fixturenames):  # type: ignore[attr-defined]
                item.add_marker(pytest.mark.xdist_group("faults"))
