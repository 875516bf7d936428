"""An empty folder in which the real command is called, as a stranger would call it."""

import asyncio
import io
import json
import logging
import os
import pty
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from fleetcron.cli import main
from fleetcron.store.store import Store
from tests.store.engines import opened
from tests.store.floor import ok

_OURS = logging.getLogger("fleetcron")

# `fleetcron` on a machine whose clock is ahead or behind: on SQLite the machine's clock is the clock of the fleet.
SHIFTED = """
import sys, time
real, shift = time.time_ns, int(sys.argv.pop(1)) * 10**9
time.time_ns = lambda: real() + shift
from fleetcron.cli import main
main()
"""


class Said(subprocess.CompletedProcess[str]):
    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


class Folder:
    """`fleetcron(...)` in it; `database` is a URL for all commands, or none."""

    def __init__(self, path: Path, database: str | None = None) -> None:
        self.path = path
        self.database = database

    def write(self, name: str, text: str) -> str:
        (self.path / name).write_text(text)
        return name

    def __call__(
        self, *arguments: str, code: int = 0, given: str | None = None, shift_s: int | None = None, **env: str
    ) -> Said:
        """Call it, and insist on its exit code. Nobody ever sees a traceback."""
        done = subprocess.run(
            [*self._argv(shift_s), *arguments],
            cwd=self.path,
            env=self._environment(env),
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return Said(done.args, done.returncode, done.stdout, done.stderr)

    def json(self, *arguments: str, **options: Any) -> Any:
        return self(*arguments, "--json", **options).json

    @contextmanager
    def serving(
        self, *arguments: str, shift_s: int | None = None, command: str = "serve", **env: str
    ) -> Iterator["Serving"]:
        process = subprocess.Popen(
            [*self._argv(shift_s), command, *arguments],
            cwd=self.path,
            env=self._environment(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        serving = Serving(process)
        try:
            yield serving
        finally:
            serving.end()

    def _argv(self, shift_s: int | None) -> list[str]:
        if shift_s is None:
            return [sys.executable, "-m", "fleetcron"]
        return [sys.executable, "-c", SHIFTED, str(shift_s)]

    def _environment(self, more: dict[str, str]) -> dict[str, str]:
        ours = {key: value for key, value in os.environ.items() if not key.startswith(("FLEETCRON_", "DATABASE_URL"))}
        if self.database is not None:
            ours["DATABASE_URL"] = self.database
        # without the API, which takes half a second to start: tests/api has it
        return {**ours, "PYTHONWARNINGS": "error", "FLEETCRON_NODE__ROLES": "scheduler,worker", **more}


class InThisProcess(Folder):
    """The same without the start of a process for each call: a tenth of the time. `serving` still starts one."""

    def __init__(
        self,
        path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        database: str | None = None,
    ) -> None:
        super().__init__(path, database)
        self._patch, self._capsys = monkeypatch, capsys

    def __call__(
        self, *arguments: str, code: int = 0, given: str | None = None, shift_s: int | None = None, **env: str
    ) -> Said:
        self._capsys.readouterr()
        with self._patch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((given or "").encode()), "utf-8"))
            if shift_s is not None:
                real = time.time_ns
                patch.setattr(time, "time_ns", lambda: real() + shift_s * 10**9)
            ended = self._main(patch, arguments, env)
        out, err = self._capsys.readouterr()
        assert ended == code, f"{arguments}: {ended}\n{out}{err}"
        return Said(arguments, ended, out, err)

    def on_a_terminal(self, *arguments: str, **env: str) -> str:
        """What a terminal is sent, if both streams of the command are one."""
        here, there = pty.openpty()
        shown: list[bytes] = []
        with os.fdopen(here, "rb", buffering=0) as screen, self._patch.context() as patch:
            reader = threading.Thread(target=_read_all, args=(screen, shown))
            reader.start()
            with open(there, "w", encoding="utf-8", buffering=1) as terminal:
                patch.setattr(sys, "stdout", terminal)
                patch.setattr(sys, "stderr", terminal)
                self._main(patch, arguments, env)
            reader.join()
        return b"".join(shown).decode()

    def _main(self, patch: pytest.MonkeyPatch, arguments: tuple[str, ...], env: dict[str, str]) -> int:
        patch.chdir(self.path)
        patch.setattr(sys, "argv", ["fleetcron", *arguments])
        known = self._environment(env)
        for key in set(os.environ) - set(known):
            patch.delenv(key)
        for key, value in env.items() if self.database is None else {"DATABASE_URL": self.database, **env}.items():
            patch.setenv(key, value)
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "path_importer_cache", {})
        patch.setattr(sys, "dont_write_bytecode", True)  # a file that is written twice within a second looks the same
        level = _OURS.level  # a command owns its process, and may say what it wants to hear
        try:
            main()
        except SystemExit as stopped:
            return int(stopped.code or 0)
        finally:
            _OURS.setLevel(level)
            self._forget()
        return 0

    def _forget(self) -> None:
        """Modules of this folder: the next command imports them for the first time, as a process would."""
        here = f"{self.path}{os.sep}"
        for name, module in list(sys.modules.items()):
            if (getattr(module, "__file__", None) or "").startswith(here):
                del sys.modules[name]


def _read_all(screen: IO[bytes], shown: list[bytes]) -> None:
    with suppress(OSError):  # nobody writes any more
        while piece := screen.read(65536):
            shown.append(piece)


class Serving:
    """A node that runs. What it says is read line by line; whoever waits for a line waits for that line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._new: queue.Queue[str | None] = queue.Queue()
        assert process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()

    def until(self, text: str, patience_s: float = 30) -> str:
        """The next line that has this in it."""
        while True:
            line = self._new.get(timeout=patience_s)
            assert line is not None, "it ended:\n" + "".join(self.lines)
            if text in line:
                return line

    def stop(self, number: signal.Signals = signal.SIGTERM) -> str:
        """Ask it to stop; it ends well. Everything that it said."""
        self.process.send_signal(number)
        assert self.process.wait(20) == 0, "".join(self.lines)
        self._reader.join()
        said = "".join(self.lines)
        assert "Traceback" not in said, said
        return said

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self.lines.append(line)
            self._new.put(line)
        self._new.put(None)


def alive(folder: Folder, pools: dict[str, int], lacks: Mapping[str, str] | None = None) -> None:
    """A worker that serves these pools for the next hour, and has not what it lacks; and somebody plans."""
    name = "-".join(["w", *pools])

    async def work() -> None:
        async with opened(f"sqlite:///{folder.path}/fleetcron.db") as engine:
            store = Store(engine)
            workers = store.workers
            ok(await workers.join(name, "", pools, 3_600_000))
            ok(await workers.lack(name, lacks or {}))
            ok(await store.shards.take("*", [0], "planner", 3_600_000))

    asyncio.run(work())
