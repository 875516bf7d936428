"""`api`: the server on SQLite, asked as admin of all tenants. `both`: the same on SQLite and on PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.api.server import Api, serving
from tests.cli.conftest import fleetcron, quick
from tests.store.conftest import postgres18_url, store_template18

__all__ = ["fleetcron", "postgres18_url", "quick", "store_template18"]


@pytest.fixture
def bare() -> Iterator[Api]:
    """Without a key, and nobody has made one."""
    with serving(":memory:") as api:
        yield api


@pytest.fixture
def api() -> Iterator[Api]:
    with serving(":memory:") as api:
        yield api.acting(api.key("ann"))


@pytest.fixture(params=["sqlite", "postgres18"])
def both(request: pytest.FixtureRequest) -> Iterator[Api]:
    url = ":memory:" if request.param == "sqlite" else str(request.getfixturevalue("postgres18_url"))
    with serving(url) as api:
        yield api.acting(api.key("ann"))
