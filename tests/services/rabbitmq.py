"""RabbitMQ, with an Erlang port mapper (epmd) of its own so that it never meets another node of this machine."""

import shutil
from pathlib import Path

import pytest

from tests.services.guard import Guard
from tests.services.ports import free_port
from tests.services.provision import Provision
from tests.services.server import serve
from tests.services.service import Image, Program, Service


def start(service: Service, program: Program, guard: Guard) -> str:
    folder = guard.folder(service.name)
    port, mapper_port, node_port = free_port(), free_port(), free_port()
    env = program.environment() | erlang(program, folder)
    env |= {
        "HOME": str(folder),  # the cookie lives there
        "ERL_EPMD_PORT": str(mapper_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": "fleetcron@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(node_port),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "no-plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "no-config"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "no-config"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2",  # more schedulers only take longer to start
    }
    # Left to itself RabbitMQ starts the mapper as a daemon, out of its process group and out of the guard's reach.
    mapper = shutil.which("epmd", path=env["PATH"])
    if mapper:
        guard.start([mapper], log=folder / "epmd.log", env=env)
    return serve(service, guard, [program.path], port=port, folder=folder, env=env)


def erlang(program: Program, folder: Path) -> dict[str, str]:
    """What Erlang must be told when it does not live where it was built for."""
    if program.tree is None:
        return {}
    root = program.tree / "usr/lib/erlang"
    (binaries,) = root.glob("erts-*/bin")
    # Debian's `erl` is a script that sets these four to absolute paths; `erlexec` behind it takes them from outside.
    (folder / "erl").write_text(f'#!/bin/sh\nexec "{binaries}/erlexec" "$@"\n')
    (folder / "erl").chmod(0o755)
    path = f"{folder}:{binaries}:{program.environment()['PATH']}"
    return {"ROOTDIR": str(root), "BINDIR": str(binaries), "EMU": "beam", "PROGNAME": "erl", "PATH": path}


RABBITMQ = Service(
    name="rabbitmq",
    programs=("rabbitmq-server",),
    folders=("usr/lib/rabbitmq/bin",),  # the one on PATH insists on being root or rabbitmq
    debian=("rabbitmq-server",),
    megabytes=36,
    image=Image(name="rabbitmq:4-alpine", port=5672),
    start=start,
    url="amqp://guest:guest@127.0.0.1:{port}/",
    hello=b"AMQP\x00\x00\x09\x01",
    answer=b"\x01\x00\x00",  # a method frame: Connection.Start
    costly=True,
)


@pytest.fixture(scope="session")
def rabbitmq_server(provision: Provision) -> str:
    return provision.url(RABBITMQ)
