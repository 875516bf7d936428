"""A process that has everything imported and forks a life at a time: a life costs no start of an interpreter.

Run as a program it is told the module whose `live(wish)` a life is (after `warm_up()`, if it has that), and whether to
wait for its end. It reads one JSON line per life from its standard input, and answers with the status at which the life
has ended, or with its process id.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from fleetcron.store.statements import ENGINES, Statements
from tests.services.guard import Guard

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ended:
    """How a life ended: by a signal, or whole (0), and what it said with its last line."""

    signal: int
    said: Mapping[str, Any]


class Nursery:
    """`folder` has the log of every life: what it prints."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self.folder = folder
        self._lives = 0

    def born(self, wish: Mapping[str, Any]) -> int:
        """The process id of a life that goes on by itself; its wish says where its `log` is."""
        return self._answer(wish)

    def lived(self, **wish: Any) -> Ended:
        """A life from its beginning to its end."""
        self._lives += 1
        log = self.folder / f"{self._lives}.log"
        status = self._answer({**wish, "log": str(log)})
        if os.WIFSIGNALED(status):
            return Ended(os.WTERMSIG(status), {})
        said = log.read_text()
        assert os.WEXITSTATUS(status) == 0, said
        return Ended(0, json.loads(said.splitlines()[-1]))

    def _answer(self, wish: Mapping[str, Any]) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(wish) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def nursery(
    guard: Guard, folder: Path, module: str, *, waits: bool, within: Sequence[str] = (), root: Path | None = None
) -> Iterator[Nursery]:
    """`waits` if lives are `lived`, one after the other; otherwise they are `born`. `within` is the beginning of a
    command that leads somewhere else, such as into a network namespace; `root` a checkout of another version."""
    places = [str(ROOT)] if root is None else [str(root / "src"), str(root)]
    path = os.pathsep.join([*places, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]).rstrip(os.pathsep)
    process = subprocess.Popen(
        [*within, sys.executable, "-m", "tests.faults.nursery", module, "waits" if waits else ""],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root or ROOT,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
        start_new_session=True,
    )
    guard.adopt(process.pid)
    try:
        with process:
            yield Nursery(process, folder)
            assert process.stdin
            process.stdin.close()
    finally:
        process.kill()


def main() -> None:
    module, waits = import_module(sys.argv[1]), bool(sys.argv[2])
    if not waits:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever dies leaves nothing behind
    for engine in ENGINES:
        Statements.for_engine(engine)
    if hasattr(module, "warm_up"):
        module.warm_up()
    gc.freeze()  # so that no life copies what it only reads
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _live(module, json.loads(line))
        print(os.waitpid(pid, 0)[1] if waits else pid, flush=True)


def _live(module: Any, wish: dict[str, Any]) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        log = os.open(wish["log"], os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        for number in (1, 2):
            os.dup2(log, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        module.live(wish)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
