"""The process that runs Python functions: started by a worker, fed and drained in batches, killed when it must be.

Here, and only here, the code of users is imported.
"""

import asyncio
import faulthandler
import logging
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from fleetcron.clock import SystemClock
from fleetcron.executors.capture import capture
from fleetcron.executors.frames import BrokenFrames
from fleetcron.executors.handlers import Handlers
from fleetcron.executors.home import Home, settle_in
from fleetcron.executors.host_talk import AT_ONCE, assignment_of, told
from fleetcron.executors.imported import Imported
from fleetcron.executors.linux import die_with
from fleetcron.executors.performer import Performer
from fleetcron.executors.reports import Report
from fleetcron.executors.threads import in_a_thread
from fleetcron.executors.wire import Wire
from fleetcron.model.target import PythonTarget


class HostProcess:
    def __init__(self, worker: socket.socket) -> None:
        self.over = asyncio.Event()
        self._wire = Wire(worker, self._heard, self.over.set)
        self._targets: dict[str, PythonTarget] = {}
        self._handlers = Handlers(())
        self._imported = Imported()
        self._performer: Performer | None = None
        self._finding: set[asyncio.Task[None]] = set()

    def _heard(self, word: list[Any]) -> None:
        performer = self._performer
        if performer is None:
            self._hello(*word)
            return
        match word:
            case ["start", list(rows)]:
                performer.start([assignment_of(row, self._targets) for row in rows])
            case ["ping", number]:
                self._wire.send(["pong", number])
            case ["ask", run_id, attempt, why, reason]:
                performer.ask((run_id, attempt), why, reason)
            case ["force", run_id, attempt]:
                performer.force((run_id, attempt))
            case ["find", str(name)]:
                task = asyncio.create_task(self._find(name))
                self._finding.add(task)
                task.add_done_callback(self._finding.discard)
            case ["open"]:
                self._open()
            case ["bye"]:
                self.over.set()
            case _:
                raise BrokenFrames("a word that a handler host does not know")

    def _hello(self, word: str, settings: dict[str, Any]) -> None:
        if word != "hello":
            raise BrokenFrames("the first word must be hello")
        self._handlers = Handlers(settings["allowed"])
        home = Home(settings["store"], tuple(settings["allowed"]))
        settle_in(home)
        self._performer = Performer(self._handlers, settings["slots"], SystemClock(), self._tell, home)
        self._wire.send(["up"])

    def _open(self) -> None:
        """What is known to be needed was imported by now, or takes long."""
        if not logging.root.handlers:  # the user's code has the first say
            logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        self._wire.send(["ready"])

    async def _find(self, name: str) -> None:
        """Beside the work and beside other imports: whichever hangs, the others do not."""
        why = await in_a_thread(partial(self._handlers.find, name))
        # What is not here may be in the new code of a module that this process has in its old form, and keeps.
        is_outdated = why is not None and self._imported.have_changed()
        self._imported.note()
        self._wire.send(["found", name, why, is_outdated])

    def _tell(self, reports: Sequence[Report]) -> None:
        for at in range(0, len(reports), AT_ONCE):
            self._wire.send(told(reports[at : at + AT_ONCE]))


async def serve(worker: socket.socket) -> None:
    process = HostProcess(worker)
    await process.over.wait()


def main(worker: int, supervisor: int) -> None:
    die_with(supervisor, signal.SIGKILL)
    faulthandler.enable()  # a crash in C leaves a trace in the output that the supervisor keeps
    capture()
    sys.setswitchinterval(0.0005)  # a plain function that computes keeps the next one waiting no longer than that
    asyncio.run(serve(socket.socket(fileno=worker)))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
