"""Start a program as a server and wait until it speaks."""

import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.services.guard import Guard, alive
from tests.services.service import Service

PATIENCE_S = 120  # RabbitMQ on two busy cores was seen to need 16


class DidNotStart(Exception):
    """The server ended or stayed silent; the text has the end of its log."""


def serve(
    service: Service,
    guard: Guard,
    argv: Sequence[str | Path],
    *,
    port: int,
    folder: Path,
    env: Mapping[str, str],
    user: str | None = None,
    farewell: signal.Signals = signal.SIGKILL,
) -> str:
    """Run `argv` until the test run ends, and give its URL as soon as it speaks."""
    log = folder / "log"
    process = guard.start(argv, log=log, env=env, user=user, farewell=farewell)
    wait_until_it_speaks(service, process.pid, port, log)
    return service.url.format(port=port)


def wait_until_it_speaks(service: Service, pid: int, port: int, log: Path, patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not speaks(port, service.hello, service.answer):
        # `alive`, not poll(): a reaped pid could be given to somebody else, and the guard still has it on its list
        running = alive(pid)
        if not running or time.monotonic() > deadline:
            state = f"said nothing for {patience_s:.0f} s" if running else "ended at once"
            end = log.read_text(errors="replace").strip().splitlines()[-15:]
            raise DidNotStart("\n  ".join([f"{service.name} {state}. The end of its log:", *end]))
        time.sleep(0.02)


def speaks(port: int, hello: bytes, answer: bytes) -> bool:
    """Does somebody on this port answer `hello` with `answer`?"""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(hello)
            return connection.recv(64).startswith(answer)
    except OSError:
        return False
