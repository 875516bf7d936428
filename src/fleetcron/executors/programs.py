"""Programs under supervision, seen from the worker: start one, ask it to stop, hear how it ended.

`keeper.py` and `supervisor.py` are the other side. A supervisor stands still while its program begins: for ever, if
that one lies on a share that does not answer. So whoever has to end and has not begun is ended by the keeper.
"""

import asyncio
import errno
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fleetcron.executors.frames import BrokenFrames
from fleetcron.executors.process_tree import KEEPER
from fleetcron.executors.supervisor import End, Order
from fleetcron.executors.wire import Wire

_KEPT_IDLE: Final = 8  # supervisors without a program, a few megabytes each
_AGAIN_S: Final = 0.005
_LATE_S: Final = 2.0  # how long a supervisor may take to do what it was asked

Chunks = list[tuple[int, str, bool]]


class Program:
    """One program. `ended` gets None when its supervisor died, which takes the program with it."""

    def __init__(self, logged: Callable[[Chunks], None], ended: Callable[[End | None], None], grace_ms: int) -> None:
        self.logged = logged
        self.ended = ended
        self._grace_ms = grace_ms
        self._supervisor: _Supervisor | None = None
        self._id = 0
        self._has_begun = False
        self._alarm: asyncio.TimerHandle | None = None  # when it is late

    def stop(self, grace_ms: int | None = None) -> None:
        """SIGTERM to it and to everything that it has started; after the grace SIGKILL."""
        if self._supervisor is not None:
            self._supervisor.wire.send(["stop", self._id, grace_ms])
            self._must_begin_in(0)  # what has not begun needs no grace

    def kill(self) -> None:
        self.stop(0)

    def _begins(self) -> None:
        """From now on its supervisor hears us, and keeps the time."""
        self._has_begun = True
        self._rest()

    def _must_begin_in(self, wait_ms: int) -> None:
        if not self._has_begun:
            alarm = asyncio.get_running_loop().call_later(wait_ms / 1000 + _LATE_S, self._is_late, False)
            if self._alarm is not None and self._alarm.when() <= alarm.when():
                alarm.cancel()
            else:
                self._rest()
                self._alarm = alarm

    def _is_late(self, is_hopeless: bool) -> None:
        if self._supervisor is not None:
            (self._supervisor.end if is_hopeless else self._supervisor.free)()
            self._alarm = asyncio.get_running_loop().call_later(_LATE_S, self._is_late, True)

    def _rest(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _goes_to(self, supervisor: "_Supervisor", order_id: int, timeout_ms: int | None) -> None:
        self._supervisor, self._id = supervisor, order_id
        if timeout_ms is not None:
            self._must_begin_in(timeout_ms + self._grace_ms)

    def _is_over(self, end: End | None) -> None:
        self._rest()
        self._supervisor = None
        self.ended(end)


class _Supervisor:
    def __init__(self, end: socket.socket, programs: "Programs", number: int, is_kept: bool) -> None:
        self.wire = Wire(end, self._heard, self._died)
        self.program: Program | None = None
        self._number = number  # by which the keeper knows it
        self._programs = programs
        self._is_kept = is_kept

    def free(self) -> None:
        """Kill what it waits for. It gets no other program, which could be hit instead."""
        self._is_kept = False
        self._programs._tell_keeper(b"-%d" % self._number)

    def end(self) -> None:
        self._programs._tell_keeper(b"!%d" % self._number)

    def _heard(self, word: list[Any]) -> None:
        program = self.program
        match word:
            case ["begun"] if program is not None:
                program._begins()
            case ["log", list(chunks)] if program is not None:
                program.logged(chunks)
            case ["done", dict(end)] if program is not None:
                self.program = None
                self._programs._is_free(self, is_kept=self._is_kept and not end["left"])
                program._is_over(end)  # type: ignore[arg-type]
            case ["full", dict(end)] if program is not None:  # it never came to be
                self.program = None
                self.wire.close()
                self._programs._is_gone(self)
                program._is_over(end)  # type: ignore[arg-type]
            case _:
                raise BrokenFrames("a word from a supervisor that makes no sense")

    def _died(self) -> None:
        self._programs._is_gone(self)
        if self.program is not None:
            program, self.program = self.program, None
            program._is_over(None)


class Programs:
    """The worker's keeper and its supervisors. One supervisor watches over one program at a time and is kept."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)  # of the keeper; a program gets what its order says
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._over: asyncio.Event = asyncio.Event()
        self._idle: list[_Supervisor] = []
        self._busy: set[_Supervisor] = set()
        self._packets: deque[tuple[bytes, list[socket.socket]]] = deque()  # for the keeper
        self._made = 0  # supervisors
        self._orders = 0
        self._until_ms: int | None = None

    def start(
        self,
        order: Order,
        logged: Callable[[Chunks], None],
        ended: Callable[[End | None], None],
        hand_down: socket.socket | None = None,
    ) -> Program:
        """`hand_down` is for the program itself and is closed here. Returns at once."""
        program = Program(logged, ended, order["grace_ms"])
        self._orders += 1
        supervisor = self._idle.pop() if self._idle and hand_down is None else self._new_supervisor(hand_down)
        supervisor.program = program
        program._goes_to(supervisor, self._orders, order["timeout_ms"])
        self._busy.add(supervisor)
        if self._until_ms is not None:
            supervisor.wire.send(["until", self._until_ms])
        supervisor.wire.send(["run", {**order, "id": self._orders}])
        return program

    def allow_until(self, until_ms: int) -> None:
        """On the steady clock: what runs then and later is killed, also if this process stands still."""
        self._until_ms = until_ms
        for supervisor in self._busy:
            supervisor.wire.send(["until", until_ms])
        self._tell_keeper(b"~%d" % until_ms)

    async def close(self) -> None:
        """Whatever still runs is killed. Returns when no process is left."""
        for supervisor in (*self._idle, *self._busy):
            supervisor.wire.close()
        self._idle.clear()
        self._busy.clear()
        self._push()
        if self._control is not None:
            self._control.shutdown(socket.SHUT_WR)
            await self._over.wait()

    def _is_free(self, supervisor: _Supervisor, *, is_kept: bool) -> None:
        self._busy.discard(supervisor)
        if is_kept and len(self._idle) < _KEPT_IDLE:
            self._idle.append(supervisor)
        else:
            supervisor.wire.close()

    def _is_gone(self, supervisor: _Supervisor) -> None:
        self._busy.discard(supervisor)
        if supervisor in self._idle:
            self._idle.remove(supervisor)

    def _new_supervisor(self, hand_down: socket.socket | None) -> _Supervisor:
        if self._control is None:
            self._start_keeper()
        ours, theirs = socket.socketpair()
        self._made += 1
        supervisor = _Supervisor(ours, self, self._made, is_kept=hand_down is None)
        self._tell_keeper(b"+%d" % self._made, [theirs] if hand_down is None else [theirs, hand_down])
        return supervisor

    def _tell_keeper(self, word: bytes, given: Sequence[socket.socket] = ()) -> None:
        if self._control is None:  # without one there is nobody whom this could be about
            return
        self._packets.append((word, list(given)))
        if len(self._packets) == 1:
            self._push()

    def _push(self) -> None:
        """It may be busy forking; waiting for it would make the worker wait."""
        while self._packets and self._control is not None:
            word, given = self._packets[0]
            try:
                socket.send_fds(self._control, [word], [each.fileno() for each in given])
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.ETOOMANYREFS):
                    asyncio.get_running_loop().call_later(_AGAIN_S, self._push)
                    return
            self._packets.popleft()
            for each in given:
                each.close()

    def _start_keeper(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", KEEPER, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=self._environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # ctrl-C in the terminal is for the worker
            )
        self._control = ours
        self._over.clear()
        asyncio.get_running_loop().add_reader(ours, self._keeper_died)
        if self._until_ms is not None:
            self._tell_keeper(b"~%d" % self._until_ms)

    def _keeper_died(self) -> None:
        """It never says a word, so this is its end. The next program gets a new one."""
        assert self._control is not None
        assert self._process is not None
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        self._control = None
        for _, given in self._packets:
            for each in given:
                each.close()  # the other ends see that nobody will come
        self._packets.clear()
        self._process.wait()  # it has closed everything, so it is ending
        self._over.set()
