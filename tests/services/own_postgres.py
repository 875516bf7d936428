"""A PostgreSQL server of a test's own: it can be killed and started again."""

import asyncio
import os
import shlex
import signal
import time
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
import pytest

from tests.services.guard import alive
from tests.services.postgres import POSTGRES18, start
from tests.services.provision import Provision
from tests.services.server import wait_until_it_speaks
from tests.services.service import Program


class OwnPostgres:
    def __init__(self, provision: Provision) -> None:
        program = provision.find(POSTGRES18)
        if not isinstance(program, Program):
            pytest.skip(
                f"{program} is not ours to kill; without {POSTGRES18.variable} a server is started for this test"
            )
        self._guard = provision.guard
        self._environment = program.environment()
        self.url = start(POSTGRES18, program, self._guard)
        self._data = Path(asyncio.run(ask(self.url, "SHOW data_directory")))
        self._port = int(asyncio.run(ask(self.url, "SHOW port")))
        self._argv = shlex.split((self._data / "postmaster.opts").read_text())

    def kill(self) -> None:
        """As `pg_ctl stop -m immediate`: no shutdown, the next start recovers."""
        pid = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        while alive(pid):
            time.sleep(0.005)

    def start(self) -> None:
        user = "nobody" if os.getuid() == 0 else None
        log = self._data.parent / "log"
        process = self._guard.start(self._argv, log=log, env=self._environment, user=user, farewell=signal.SIGQUIT)
        wait_until_it_speaks(POSTGRES18, process.pid, self._port, log)


async def ask(url: str, question: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        return str(await connection.fetchval(question))
    finally:
        await connection.close()
