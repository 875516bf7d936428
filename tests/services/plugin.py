"""pytest's side of the services: one guard per process, `--without NAME`, costly services on one xdist worker."""

import os
from collections.abc import Iterator

import pytest

from tests.services.catalog import SERVICES
from tests.services.guard import Guard
from tests.services.provision import Provision


@pytest.fixture(scope="session")
def guard() -> Iterator[Guard]:
    guard = Guard()
    yield guard
    guard.end()


@pytest.fixture(scope="session")
def provision(pytestconfig: pytest.Config, guard: Guard) -> Provision:
    return Provision(pytestconfig, guard)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without",
        action="append",
        default=[],
        choices=sorted(SERVICES),
        metavar="NAME",
        help=f"skip the tests of a service; not in CI ({', '.join(sorted(SERVICES))})",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("without") and os.environ.get("CI"):
        raise pytest.UsageError("--without is for your own machine: CI is set, and there nothing is left out")


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One xdist worker gets all tests of a costly service; the others are started by each worker that needs them."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    costly = [service.name for service in SERVICES.values() if service.costly]
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        for name in costly:
            if any(fixture.startswith(name) for fixture in fixtures):
                item.add_marker(pytest.mark.xdist_group(name))
