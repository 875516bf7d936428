"""SQS as moto plays it, in a process of its own. AWS itself is not tried."""

from pathlib import Path

import pytest

from tests.services.guard import Guard
from tests.services.ports import free_port
from tests.services.provision import Provision
from tests.services.server import serve
from tests.services.service import Image, Program, Service


def start(service: Service, program: Program, guard: Guard) -> str:
    port, folder = free_port(), guard.folder(service.name)
    argv: list[str | Path] = [program.path, "--host", "127.0.0.1", "--port", str(port)]
    return serve(service, guard, argv, port=port, folder=folder, env=program.environment())


SQS = Service(
    name="sqs",
    programs=("moto_server",),
    wheel="moto",
    member="bin/moto_server",
    image=Image(name="motoserver/moto:5.1.4", port=5000),
    start=start,
    url="http://127.0.0.1:{port}",
    hello=b"GET /moto-api/ HTTP/1.0\r\n\r\n",
    answer=b"HTTP/1.",
    costly=True,
)


@pytest.fixture(scope="session")
def sqs_server(provision: Provision) -> str:
    return provision.url(SQS)
