"""What all tests share: the real services (tests/services) and `--soak`."""

import pytest

pytest.register_assert_rewrite("tests.services")
pytest_plugins = [
    "tests.services.plugin",
    "tests.services.chromium",
    "tests.services.nats",
    "tests.services.postgres",
    "tests.services.prometheus",
    "tests.services.rabbitmq",
    "tests.services.redis",
    "tests.services.sqs",
    "tests.services.valkey",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the long suites too (tests marked `soak`)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("soak"):
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    if long:
        items[:] = [item for item in items if item not in long]
        config.hook.pytest_deselected(items=long)
