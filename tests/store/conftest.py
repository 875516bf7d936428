"""`store_url`: each engine in turn, with all tables. `empty_url`: without any."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetcron.store.migrations import migrate
from tests.services.own_postgres import OwnPostgres
from tests.services.postgres import Template
from tests.services.provision import Provision
from tests.store.engines import ALL, ENGINES, POSTGRES, bare


@pytest.fixture(params=ALL)
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of a database with all tables (SQLite: `opened` makes them). The engine is the test's parameter."""
    return str(request.getfixturevalue(f"{request.param.replace('-', '_')}_url"))


# For tests of the engines themselves, which do the same whatever the version of the server.
@pytest.fixture(params=ENGINES)
def engine_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param.replace('-', '_')}_url"))


@pytest.fixture(params=("sqlite-file", "postgres18"))
def empty_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database."""
    name = f"{request.param}_database" if request.param in POSTGRES else f"{request.param.replace('-', '_')}_url"
    return str(request.getfixturevalue(name))


@pytest.fixture(params=POSTGRES)
def postgres_url(request: pytest.FixtureRequest) -> str:
    """What only PostgreSQL can show, such as two sessions at once: with all tables."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def sqlite_file_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}"


@pytest.fixture
def sqlite_memory_url() -> str:
    return ":memory:"


@pytest.fixture
def postgres16_url(store_template16: Template) -> Iterator[str]:
    with store_template16.copy() as url:
        yield url


@pytest.fixture
def postgres18_url(store_template18: Template) -> Iterator[str]:
    with store_template18.copy() as url:
        yield url


# Templates of our own: the ones of tests/services are shared by the whole session and stay empty.
@pytest.fixture(scope="session")
def store_template16(postgres16_server: str) -> Iterator[Template]:
    template = Template(postgres16_server, give_it_tables)
    yield template
    template.drop()


@pytest.fixture(scope="session")
def store_template18(postgres18_server: str) -> Iterator[Template]:
    template = Template(postgres18_server, give_it_tables)
    yield template
    template.drop()


def give_it_tables(url: str) -> None:
    async def run() -> None:
        async with bare(url) as engine:
            await migrate(engine)

    asyncio.run(run())


@pytest.fixture
def own_postgres(provision: Provision) -> OwnPostgres:
    """A server that only this test uses, so that it may be killed."""
    return OwnPostgres(provision)
