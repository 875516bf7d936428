"""Watches over one program at a time, in a process of its own between the worker and the program.

It adopts whatever the program leaves behind, so that nobody gets away by forking, by a session of its own or by
outliving its parent. It reads what the program prints, so that a gigabyte of output costs the worker nothing. It keeps
the time itself, so that a worker that stands still cannot make a timeout late. And when the worker is gone, even by
kill -9, the kernel closes the socket between them, and the supervisor ends everything at once.

A worker that stands still (SIGSTOP, a machine that swaps, a debugger) closes nothing, and its lease runs out: others
take its runs over while its programs go on. So this is a dead man's switch too: with each renewal of its lease the
worker says until when programs may go on, on the steady clock, which all processes of a machine share. Past that
moment the supervisor kills everything, whoever is asleep. Handler hosts are programs like all others, so that this one
switch is enough. A worker that is awake stops its work before that moment, with more consideration.

While a program begins (its folder, its file, exec) this process stands still. A fork that does not wait would cost two
to four times as much for every program, so it is the keeper that ends a beginning without an end.

From the worker: ["run", order], ["stop", id, grace in ms or null], ["until", ms]. To the worker: ["begun"] from a
program that lasts, ["log", chunks], ["done", end].
"""

import errno
import os
import select
import signal
import socket
import subprocess
from contextlib import ExitStack, suppress
from typing import Any, Final, TypedDict

from fleetcron.clock import Clock
from fleetcron.executors.frames import BrokenFrames, Frames, framed
from fleetcron.executors.outputs import Output
from fleetcron.executors.process_tree import descendants, reap, send_to_all

_READ: Final = 64 * 1024
_SOON_MS: Final = 200  # how long a line may wait for company
_LASTS_MS: Final = 500  # what ends sooner has its end to say that it has begun
_AGAIN_MS: Final = 20  # between two rounds of killing: what was forked meanwhile comes next
_PATIENCE_MS: Final = 2000  # with processes that cannot be killed, such as those of another user


class Order(TypedDict):
    id: int
    argv: list[str]
    env: dict[str, str]
    cwd: str | None
    stdin: str | None
    timeout_ms: int | None
    grace_ms: int


class End(TypedDict):
    """How it ended. `code` is negative for a signal. `overdue`: the worker has not said that it may go on. `left`:
    processes that could not be killed."""

    started_ms: int
    finished_ms: int
    code: int | None
    error: tuple[str, str] | None
    timed_out: bool
    asked: bool
    overdue: bool
    tail: str
    total: int
    left: list[int]


class Supervisor:
    """`hand_down` is a descriptor for the program itself. It gets two arguments more: this, and our process id."""

    def __init__(self, worker: socket.socket, clock: Clock, hand_down: int | None = None) -> None:
        self._worker = worker
        self._clock = clock
        self._hand_down = hand_down
        self._frames = Frames()
        self._unsent = bytearray()
        self._orders: list[Order] = []
        self.asked: dict[int, int | None] = {}  # the grace by order: one may come before its program has begun
        self.until_ms: int | None = None  # programs may go on until then; None: the worker has no lease
        self.doomed = False  # nobody is interested any more: kill, and go
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._doom)
        worker.setblocking(False)

    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def serve(self) -> None:
        while not self.doomed:
            if self._orders:
                end = self._run(self._orders.pop(0))
                if not self.doomed:  # otherwise it was we who ended it, and nobody's doing
                    self.tell(["done", dict(end)])
                self.asked.clear()  # the next order comes after this answer
            else:
                self.wait(None, None)
        reap()

    def _run(self, order: Order) -> End:
        started_ms = self.now_ms()
        try:
            program, reading = self._launch(order)
        except (OSError, ValueError) as error:
            return _not_started(error, order, started_ms)
        try:
            watch = _Watch(self, order, program, reading, started_ms)
            if self.now_ms() > started_ms + _SOON_MS:
                watch.catch_up()
            return watch.until_all_are_gone()
        finally:
            os.close(reading)

    def _launch(self, order: Order) -> tuple[int, int]:
        argv, handed = order["argv"], []
        if self._hand_down is not None:
            argv, handed = [*argv, str(self._hand_down), str(os.getpid())], [self._hand_down]
        with ExitStack() as ours:
            given = _file_of(order["stdin"])
            ours.callback(os.close, given)
            reading, writing = os.pipe2(os.O_CLOEXEC)
            ours.callback(os.close, writing)
            if self._hand_down is not None:
                ours.callback(os.close, self._hand_down)
                self._hand_down = None
            try:
                program = subprocess.Popen(
                    argv,
                    stdin=given,
                    stdout=writing,
                    stderr=writing,
                    cwd=order["cwd"],
                    env=order["env"],
                    start_new_session=True,
                    pass_fds=handed,
                )
            except BaseException:
                os.close(reading)
                raise
        os.set_blocking(reading, False)
        program.returncode = 0  # we reap it ourselves, among all the others
        return program.pid, reading

    def wait(self, reading: int | None, wait_ms: int | None) -> bool:
        """Until something happens: an order, output (the answer is whether there is some), a child's end, the time."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        if not self.doomed:
            poll.register(self._worker, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        if reading is not None:
            poll.register(reading, select.POLLIN)
        ready = dict(poll.poll(wait_ms))
        if self._woken in ready:
            with suppress(BlockingIOError):
                os.read(self._woken, 4096)
        if self._worker.fileno() in ready:
            self._listen()
            self._send()
        return reading in ready

    def _listen(self) -> None:
        """All that was said: of several moments until when programs may go on, only the last one counts."""
        try:
            while data := self._worker.recv(_READ):
                for word in self._frames.feed(data):
                    self._obey(word)
            self.doomed = True
        except BlockingIOError:
            return
        except (OSError, BrokenFrames):
            self.doomed = True

    def _obey(self, word: list[Any]) -> None:
        match word:
            case ["run", order]:
                self._orders.append(order)
            case ["stop", order_id, grace_ms]:
                self.asked[order_id] = grace_ms
            case ["until", int(until_ms)]:
                self.until_ms = until_ms

    def tell(self, word: list[Any]) -> None:
        """Never waits. What is not taken at once is kept, and a program's output is limited."""
        self._unsent += framed(word)
        self._send()

    def _send(self) -> None:
        if not self._unsent:
            return
        try:
            del self._unsent[: self._worker.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.doomed = True
            self._unsent.clear()

    def _doom(self, *_: object) -> None:
        self.doomed = True


class _Watch:
    """The life of one program and of everything that it starts."""

    def __init__(self, supervisor: Supervisor, order: Order, program: int, reading: int, started_ms: int) -> None:
        self._supervisor = supervisor
        self._order = order
        self._program = program
        self._reading: int | None = reading
        self._started_ms = started_ms
        self._deadline_ms = None if order["timeout_ms"] is None else started_ms + order["timeout_ms"]
        self._begun_ms: int | None = supervisor.now_ms() + _LASTS_MS  # when to say so
        self._output = Output()
        self._pass_on_ms: int | None = None  # when the lines that wait for company have waited enough
        self._code: int | None = None  # of the program, once it has ended
        self._childless = False
        self._kill_ms: int | None = None  # when whoever still lives is to be killed
        self._killed_ms: int | None = None  # when that began
        self._timed_out = self._was_asked = self._is_overdue = False
        self._term_ms: int | None = None  # when they were asked to end

    def catch_up(self) -> None:
        """It began late. What came due meanwhile goes before how it ended: it may have been killed because of that."""
        self._supervisor.wait(None, 0)
        self._end_what_must_end(self._supervisor.now_ms())

    def until_all_are_gone(self) -> End:
        while True:
            now_ms = self._supervisor.now_ms()
            self._reap()
            if self._childless or self._is_hopeless(now_ms):
                break
            self._end_what_must_end(now_ms)
            self._say_it_has_begun(now_ms)
            self._pass_on(now_ms)
            if self._supervisor.wait(self._reading, self._next_ms(now_ms)):
                self._read()
        for _ in range(64):  # what is still in the pipe; a stranger may hold the other end, and write for ever
            if not self._read():
                break
        self._pass_on(None)
        return {
            "started_ms": self._started_ms,
            "finished_ms": self._supervisor.now_ms(),
            "code": self._code,
            "error": None,
            "timed_out": self._timed_out,
            "asked": self._was_asked,
            "overdue": self._is_overdue,
            "tail": self._output.tail(),
            "total": self._output.total,
            "left": [] if self._childless else descendants(os.getpid()),
        }

    def _reap(self) -> None:
        ended, self._childless = reap()
        self._code = ended.get(self._program, self._code)

    def _is_hopeless(self, now_ms: int) -> bool:
        return self._killed_ms is not None and now_ms > self._killed_ms + _PATIENCE_MS

    def _end_what_must_end(self, now_ms: int) -> None:
        asked, number = self._supervisor.asked, self._order["id"]
        is_late = self._deadline_ms is not None and now_ms >= self._deadline_ms
        if self._term_ms is None and (self._code is not None or is_late or number in asked):
            if self._code is None:
                self._timed_out = number not in asked
                self._was_asked = not self._timed_out
            self._term_ms = now_ms
            send_to_all(descendants(os.getpid()), signal.SIGTERM)
            send_to_all(descendants(os.getpid()), signal.SIGCONT)  # one that was stopped would not hear it
        if self._term_ms is not None:
            grace_ms = asked.get(number)
            self._kill_ms = self._term_ms + (self._order["grace_ms"] if grace_ms is None else grace_ms)
        until_ms = self._supervisor.until_ms
        is_overdue = until_ms is not None and now_ms >= until_ms
        if is_overdue and self._code is None and self._killed_ms is None:
            self._is_overdue = True
        if self._supervisor.doomed or is_overdue:
            self._kill_ms = now_ms
        if self._kill_ms is not None and now_ms >= self._kill_ms:
            self._killed_ms = self._killed_ms or now_ms
            send_to_all(descendants(os.getpid()), signal.SIGKILL)

    def _say_it_has_begun(self, now_ms: int) -> None:
        if self._begun_ms is not None and (now_ms >= self._begun_ms or self._term_ms is not None):
            self._begun_ms = None
            self._supervisor.tell(["begun"])

    def _next_ms(self, now_ms: int) -> int | None:
        moments = [self._pass_on_ms, self._begun_ms]
        if self._kill_ms is None or now_ms < self._kill_ms:
            moments.append(self._supervisor.until_ms)
        if self._kill_ms is None:
            moments.append(self._deadline_ms)
        else:
            moments.append(self._kill_ms if now_ms < self._kill_ms else now_ms + _AGAIN_MS)
        coming = [moment for moment in moments if moment is not None]
        return max(0, min(coming) - now_ms) if coming else None

    def _read(self) -> bool:
        if self._reading is None:
            return False
        try:
            data = os.read(self._reading, _READ)
        except BlockingIOError:
            return False
        if not data:
            self._reading = None  # everybody has closed it; somebody may live on
            return False
        self._output.write(data)
        if self._pass_on_ms is None:
            self._pass_on_ms = self._supervisor.now_ms() + _SOON_MS
        return True

    def _pass_on(self, now_ms: int | None) -> None:
        """`None`: it has ended."""
        if now_ms is None or (self._pass_on_ms is not None and (now_ms >= self._pass_on_ms or self._output.is_full)):
            self._pass_on_ms = None
            if chunks := self._output.chunks(ended=now_ms is None):
                self._supervisor.tell(["log", chunks])


def _file_of(text: str | None) -> int:
    """Standard input that nobody has to write while it is read: a file in memory."""
    if text is None:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    held = os.memfd_create("payload", os.MFD_CLOEXEC)
    with open(held, "wb", closefd=False) as file:
        file.write(text.encode())
    os.lseek(held, 0, os.SEEK_SET)
    return held


def _not_started(error: OSError | ValueError, order: Order, now_ms: int) -> End:
    match error:
        case FileNotFoundError() | NotADirectoryError():
            why = f"{error.filename} is not there{_or_no_folder(error, order)}; is it installed on this worker?"
            return _never_begun(("not_found", why), now_ms)
        case OSError(errno=errno.EAGAIN | errno.ENOMEM | errno.EMFILE | errno.ENFILE):
            return no_room(error, now_ms)
    return _never_begun(("not_executable", f"{order['argv'][0]} cannot be run: {error}"), now_ms)


def _or_no_folder(error: OSError, order: Order) -> str:
    return ", or not a folder" if error.filename == order["cwd"] else ""


def no_room(error: OSError, now_ms: int) -> End:
    """The end of a program for which there was no process."""
    return _never_begun(("not_started", f"no room for another process: {error.strerror}"), now_ms)


def _never_begun(reason: tuple[str, str], now_ms: int) -> End:
    return {
        "started_ms": now_ms,
        "finished_ms": now_ms,
        "code": None,
        "error": reason,
        "timed_out": False,
        "asked": False,
        "overdue": False,
        "tail": "",
        "total": 0,
        "left": [],
    }
