"""The process that makes supervisors: one for each worker, started once and forked from then on.

A fork of this small process with one thread costs a millisecond or two; starting an interpreter for each supervisor
would cost fifty. It is also the last net: should a supervisor be killed, its orphans come here and are ended here. It
ends with its worker, and ends everything before.

The worker sends a packet for each supervisor, "+" and its number, with the supervisor's end of their socket and, if the
program is to get a socket of its own, that one too. If there is no room for a process, or for the sockets, it says so
there, in the supervisor's place: ["full", end].

While a program begins, its supervisor waits for it and hears nobody; only a SIGKILL ends that. If its file or its
folder is on a share that does not answer, somebody else has to keep the time. "-" and a number: kill all that is below
that supervisor, which then goes on and tells how it ended. "!": kill the supervisor too, because no signal reaches what
is below it. "~": until when programs may go on, as the supervisors hear it.
"""

import errno
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from fleetcron.clock import SystemClock
from fleetcron.executors.frames import framed
from fleetcron.executors.linux import adopt_orphans, die_with
from fleetcron.executors.process_tree import children_of, descendants, reap, send_to_all
from fleetcron.executors.supervisor import Supervisor, no_room

_AGAIN_MS: Final = 20
_ROUNDS: Final = 4000 // _AGAIN_MS
_LATE_MS: Final = 1000  # after which we do what a supervisor should have done


class Keeper:
    def __init__(self, worker: socket.socket) -> None:
        self._worker = worker
        self._supervisors: dict[int, int] = {}  # their numbers, by process
        self._switch_ms: int | None = None  # when the worker counts as dead
        self._is_over = False
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake = wake
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._be_over)

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        poll.register(self._worker, select.POLLIN)
        while not self._is_over:
            wait_ms = self._left_ms()
            if self._end_orphans():
                wait_ms = _AGAIN_MS if wait_ms is None else min(wait_ms, _AGAIN_MS)
            ready = dict(poll.poll(wait_ms))
            if self._woken in ready:
                self._drain()
            if self._worker.fileno() in ready:
                self._listen()
            elif self._left_ms() == 0:  # and no later moment waits to be heard
                self._end_what_is_overdue()
        self._end_all()

    def _listen(self) -> None:
        data, given, flags, _ = socket.recv_fds(self._worker, 32, 2)
        word, number = data[:1], int(data[1:] or 0)
        match word:
            case b"+":
                self._make_supervisor(number, given, flags)
            case b"-" | b"!":
                for pid in [pid for pid, each in self._supervisors.items() if each == number]:
                    send_to_all([*descendants(pid), *([pid] if word == b"!" else [])], signal.SIGKILL)
            case b"~":
                self._switch_ms = number + _LATE_MS
            case _:
                self._is_over = True

    def _make_supervisor(self, number: int, given: list[int], flags: int) -> None:
        keeper = os.getpid()
        try:
            if flags & socket.MSG_CTRUNC:  # some of them are lost
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            pid = os.fork()
            if not pid:
                self._become_supervisor(keeper, given)
            self._supervisors[pid] = number
        except OSError as error:  # its program is not started, and all the others go on
            full = framed(["full", dict(no_room(error, SystemClock().monotonic_ms()))])
            with suppress(OSError):  # the worker is gone, or has given it up
                for end in given[:1]:  # if that was lost too, the worker sees it closed
                    os.write(end, full)
        finally:
            for each in given:
                os.close(each)

    def _become_supervisor(self, keeper: int, given: list[int]) -> None:
        try:
            signal.set_wakeup_fd(-1)
            for each in (self._worker.fileno(), self._woken, self._wake):
                os.close(each)
            adopt_orphans()
            end = socket.socket(fileno=given[0])
            supervisor = Supervisor(end, SystemClock(), given[1] if len(given) > 1 else None)
            die_with(keeper, signal.SIGTERM)  # which it understands by now
            supervisor.serve()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)

    def _end_orphans(self) -> bool:
        """A supervisor that ends by itself leaves none."""
        ended, _ = reap()
        self._forget(ended)
        return bool(ended) and self._kill_orphans()

    def _left_ms(self) -> int | None:
        return None if self._switch_ms is None else max(0, self._switch_ms - SystemClock().monotonic_ms())

    def _end_what_is_overdue(self) -> None:
        """Each supervisor that hears has done it already."""
        for pid in self._supervisors:
            send_to_all(descendants(pid), signal.SIGKILL)
        self._switch_ms = SystemClock().monotonic_ms() + _LATE_MS

    def _forget(self, ended: Iterable[int]) -> None:
        for pid in ended:
            self._supervisors.pop(pid, None)

    def _kill_orphans(self) -> bool:
        orphans = [pid for pid in children_of(os.getpid()) if pid not in self._supervisors]
        for orphan in orphans:
            send_to_all([orphan, *descendants(orphan)], signal.SIGKILL)
        return bool(orphans)

    def _end_all(self) -> None:
        """Each supervisor ends its own; whoever is left then comes to us."""
        send_to_all(sorted(self._supervisors), signal.SIGTERM)
        for turn in range(2 * _ROUNDS):
            ended, is_last = reap()
            if is_last:
                return
            self._forget(ended)
            self._kill_orphans()
            if turn == _ROUNDS:  # it takes them two seconds at most, unless something is very wrong
                send_to_all(sorted(self._supervisors), signal.SIGKILL)
            select.select([self._woken], [], [], _AGAIN_MS / 1000)
            self._drain()

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._woken, 4096)

    def _be_over(self, *_: object) -> None:
        self._is_over = True


def main(worker: int, parent: int) -> None:
    adopt_orphans()
    keeper = Keeper(socket.socket(fileno=worker))
    die_with(parent, signal.SIGTERM)
    gc.collect()
    gc.freeze()  # the forks share what is here; the collector would write to every page of it
    keeper.serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
