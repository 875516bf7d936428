"""Redis itself, 7 or newer."""

from pathlib import Path

import pytest

from tests.services.guard import Guard
from tests.services.ports import free_port
from tests.services.provision import Provision
from tests.services.server import serve
from tests.services.service import Image, Program, Service


def start(service: Service, program: Program, guard: Guard) -> str:
    port, folder = free_port(), guard.folder(service.name)
    argv: list[str | Path] = [program.path, "--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--save", ""]
    return serve(service, guard, argv, port=port, folder=folder, env=program.environment())


REDIS = Service(
    name="redis",
    programs=("redis-server",),
    folders=("usr/bin",),
    version=r"^Redis server v=([7-9]|\d\d)\.",  # Valkey answers to this name too, and says so
    debian=("redis-server",),
    megabytes=2,
    image=Image(name="redis:7-alpine", port=6379),
    start=start,
    url="redis://127.0.0.1:{port}/0",
    hello=b"PING\r\n",
    answer=b"+PONG",
)


@pytest.fixture(scope="session")
def redis_server(provision: Provision) -> str:
    return provision.url(REDIS)
