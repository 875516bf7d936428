"""`client`: each face of the client, on one real server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.api.server import Api, serving
from tests.client.faces import Asked, asked, closed


@pytest.fixture(scope="module")
def server() -> Iterator[Api]:
    with serving(":memory:") as api:
        yield api.acting(api.key("ann"))


@pytest.fixture(params=["blocking", "asynchronous"])
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(face: str) -> Iterator[Callable[..., Asked]]:
    """A client of this face; closed at the end."""
    with ExitStack() as stack:

        def connected(url: str, **more: Any) -> Asked:
            client = asked(face, url, **more)
            stack.callback(closed, client)
            return client

        yield connected


@pytest.fixture
def client(server: Api, connect: Callable[..., Asked]) -> Asked:
    return connect(server.url, key=server._key)
