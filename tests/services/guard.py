"""End every server and remove every folder when the test run is over, however it ended.

One guard process per pytest process. It reads a pipe whose only writer is pytest and is told there what to end. The
kernel closes the pipe when pytest is gone: after the last test, after ctrl-C, after kill -9. Only then the guard acts.
A normal end closes the pipe too, so the path that a crash needs is walked by every run.
"""

import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE_S = 10

# A server waits for one line before it becomes itself, and the line is sent only after the guard knows its pid: there
# is no moment in which a kill -9 leaves a server that nobody knows. (End of file instead of a line: it just leaves.)
HOLD = ("/bin/sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh")


class Guard:
    def __init__(self) -> None:
        self._servers: list[subprocess.Popen[bytes]] = []
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,  # it outlives pytest for a moment and must not hold the user's terminal or pipe
            stderr=subprocess.DEVNULL,
            cwd="/",
            bufsize=0,
            start_new_session=True,  # ctrl-C in the terminal must not reach it
        )
        assert self._process.stdin is not None
        self._pipe = self._process.stdin
        os.register_at_fork(after_in_child=self._pipe.close)  # a forked child would keep the pipe open after our death

    def folder(self, name: str, user: str | None = None) -> Path:
        """A new temporary folder, owned by `user` if one is given."""
        # As root the default may lie below /root, where no other user gets in.
        path = Path("/tmp" if user else tempfile.gettempdir(), f"fleetcron-{name}-{secrets.token_hex(6)}")
        self._tell({"folder": str(path)})
        path.mkdir(mode=0o700)
        if user:
            shutil.chown(path, user)
        return path

    def start(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        farewell: signal.Signals = signal.SIGKILL,
    ) -> subprocess.Popen[bytes]:
        """Start `argv` as the leader of its own process group, which the guard ends with `farewell`."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*HOLD, *argv],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
                env=env,
                **identity(user),
                start_new_session=True,
            )
        self._servers.append(process)
        self.adopt(process.pid, farewell)
        assert process.stdin is not None
        with process.stdin as hold:
            hold.write(b"\n")
        return process

    def adopt(self, group: int, farewell: signal.Signals = signal.SIGKILL) -> None:
        """End this process group too, though somebody else started it."""
        self._tell({"group": group, "farewell": int(farewell)})

    def on_end(self, *command: str) -> None:
        """Run `command` when the servers are gone."""
        self._tell({"command": command})

    def end(self) -> None:
        self._pipe.close()  # that is all; the rest only waits until it has happened
        for server in self._servers:
            server.wait(timeout=2 * PATIENCE_S)
        self._process.wait()

    def _tell(self, duty: dict[str, object]) -> None:
        self._pipe.write(json.dumps(duty).encode() + b"\n")  # one write below PIPE_BUF: never half a line


def identity(user: str | None) -> dict[str, Any]:
    """What tells subprocess to run a program as `user`; only root may."""
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": ()} if user else {}


def alive(pid: int) -> bool:
    """Is the process running? One that is dead but not reaped is not: in a container nobody may ever reap it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def keep_watch() -> None:
    duties = [json.loads(line) for line in sys.stdin.buffer]  # returns when the pipe closes
    groups = [(duty["group"], duty["farewell"]) for duty in duties if "group" in duty]
    for group, farewell in groups:
        send(group, farewell)
    deadline = time.monotonic() + PATIENCE_S
    while any(alive(group) for group, _ in groups) and time.monotonic() < deadline:
        time.sleep(0.01)
    for group, _ in groups:
        send(group, signal.SIGKILL)  # whoever did not go, and what a leader left behind
    for duty in duties:
        if "command" in duty:
            subprocess.run(duty["command"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for duty in duties:
        if "folder" in duty:
            shutil.rmtree(duty["folder"], ignore_errors=True)


def send(group: int, number: int) -> None:
    # No innocent is hit: until pytest is gone a dead server's pid stays taken, because pytest has not reaped it.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    keep_watch()
