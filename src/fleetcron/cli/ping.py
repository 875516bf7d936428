"""`fleetcron ping`: the old scheduler says that it has run a job. It is called from a line of a crontab.

The command of the line comes first: it is started before anything of the store or of the API is even imported, and
whatever goes wrong with the ping is one line on standard error. One that hangs costs the timeout, and nothing else.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from typing import Any, Final

import click

from fleetcron.cli.place import api_of
from fleetcron.clock import SystemClock, utc_now
from fleetcron.errors import ScheduleError
from fleetcron.model.ping import LONGEST_HOST, Told
from fleetcron.times.durations import duration_ms
from fleetcron.times.instants import parse_instant

_PASSED_ON: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_NOT_FOUND, _NOT_RUN = 127, 126  # as a shell says it
_TIMEOUT_MS: Final = 5000
_LOST: Final = 3
_HIGHEST: Final = 255  # of exit codes: a shell takes the rest of a larger one away


class _Line(click.Command):
    """What stands behind `--` is run, whatever is wrong with what stands in front of it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" not in args:
            return super().parse_args(ctx, args)
        own, line = args[: args.index("--")], args[args.index("--") + 1 :]
        try:
            rest = super().parse_args(ctx, list(own))  # it takes its list apart
            if line and ctx.params["line"]:
                raise click.UsageError(
                    f"only the name of the job goes in front of --, and not '{ctx.params['line'][0]}'"
                )
        except click.UsageError as error:
            if not line or ctx.resilient_parsing:
                raise
            sys.exit(_run_untold(own, line, error))
        ctx.params["line"] += tuple(line)
        return rest


def _run_untold(own: list[str], line: list[str], error: click.UsageError) -> int:
    """A line that cannot be understood pings nobody. A guard in it still counts: a command must not run twice."""
    teller = _Teller("", quiet=bool({"-q", "--quiet"} & set(own)))
    if any(teller.is_over(until) for until in _untils(own)):
        return 0
    teller.say(f"{error.format_message()} The command runs, and nobody is told of it.")
    return _run(line, None)


def _untils(own: list[str]) -> Iterator[str]:
    for word, after in pairwise([*own, ""]):
        if word == "--until":
            yield after
        elif word.startswith("--until="):
            yield word.partition("=")[2]


def _exit_code(_context: click.Context, _option: click.Parameter, value: int | None) -> int | None:
    if value is not None and not 0 <= value <= _HIGHEST:
        raise click.BadParameter(f"{value} is no exit code: they are 0 to {_HIGHEST}. Write $? for that of a command.")
    return value


@click.command("ping", cls=_Line)
@click.argument("name")
@click.argument("line", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--exit-code",
    type=int,
    metavar="N",
    callback=_exit_code,
    help="How the command ended, 0 to 255; ping ends with it.",
)
@click.option("--start", is_flag=True, help="The command starts now; ping its end with the same --id.")
@click.option("--id", "ping_id", metavar="TEXT", help="What ties an end to its start. [default: a new one]")
@click.option("--duration", metavar="DURATION", help="How long the command has run.")
@click.option("--host", metavar="NAME", help="Where it ran. [default: this machine's name]")
@click.option("--until", metavar="T", help="With a command: from this instant on, do not even run it.")
@click.option("--timeout", metavar="DURATION", help="Give the store or the API up after this. [default: 5s]")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing, also if the ping is lost.")
@click.option("--database", metavar="URL", help="Where the store is; as of every command.")
@click.option("--api", metavar="URL", help="Tell this API instead, with the key of FLEETCRON_API_KEY.")
@click.option("--config", "config_file", metavar="FILE", help="Settings; as of every command.")
def command(name: str, line: tuple[str, ...], exit_code: int | None, until: str | None, **values: Any) -> None:
    """Say that the old scheduler has run NAME, a job in shadow.

    Behind a command: `old-command; fleetcron ping report --exit-code $?`. Or in front of it, which also tells when it
    started: `fleetcron ping report -- old-command`. The command runs whether or not the ping arrives, and ping ends
    with its exit code.

    Exit codes: that of the command, or N of --exit-code N, whatever becomes of the ping. Without either: 0 noted, 1
    noted, but the job is not in shadow, 2 no such job, bad input or a refused key, 3 the store or the API is away.
    """
    started, ping_id, duration = values.pop("start"), values.pop("ping_id"), values.pop("duration")
    teller = _Teller(name, **values)
    if line:
        if until is not None and teller.is_over(until):
            return
        sys.exit(_run(list(line), teller))
    if until is not None:
        raise click.UsageError("--until goes with a command: fleetcron ping NAME --until T -- COMMAND")
    if started and (exit_code is not None or duration is not None):
        raise click.UsageError("a start has no --exit-code and no --duration: they belong to its end")
    took_ms = None if duration is None else duration_ms(duration)
    told = Told("start" if started else "end", exit_code, took_ms, host=teller.host)
    teller.tell(told if ping_id is None else replace(told, ping_id=ping_id))
    code = teller.wait()
    _leave(code if exit_code is None else exit_code, teller)


def _run(line: list[str], teller: "_Teller | None") -> int:
    """Run the command, tell its start while it runs, and its end; its exit code."""
    clock = SystemClock()
    began_ms = clock.monotonic_ms()
    try:
        child = subprocess.Popen(line)
    except OSError as error:
        print(f"{line[0]}: {error.strerror}", file=sys.stderr)
        code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUN
        if teller is not None:
            teller.tell(Told("end", code, 0, host=teller.host))
            teller.wait()
        return code
    start = Told("start", host="" if teller is None else teller.host)
    if teller is not None:
        teller.tell(start)
    with _passed_on(child):
        ended = child.wait()
    code = ended if ended >= 0 else 128 - ended
    took_ms = clock.monotonic_ms() - began_ms
    if teller is None:
        return code
    teller.wait()
    if not teller.hangs or took_ms > teller.timeout_ms:  # who hangs right now has cost the timeout, and is left alone
        teller.tell(replace(start, event="end", exit_code=code, took_ms=took_ms))
        teller.wait()
    return code if not teller.hangs else _leave(code, teller)


@contextmanager
def _passed_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Whoever stops us means the command."""
    before = {number: signal.signal(number, lambda got, _frame: child.send_signal(got)) for number in _PASSED_ON}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(code: int, teller: "_Teller") -> Any:
    """A thread that waits for a database must not keep a line of a crontab."""
    if not teller.hangs:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class _Teller:
    """Tells the store or the API, in a thread beside the command."""

    def __init__(
        self,
        name: str,
        host: str | None = None,
        timeout: str | None = None,
        quiet: bool = False,
        api: str | None = None,
        database: str | None = None,
        config_file: str | None = None,
    ) -> None:
        self.host = (host or socket.gethostname())[:LONGEST_HOST]
        self._name = name
        self._quiet = quiet
        self._where = {"database": database, "config_file": config_file, "api": api_of(api, database)}
        self.timeout_ms = self._ms(timeout)
        self._threads: list[threading.Thread] = []
        self._code = _LOST
        self._reported = threading.Lock()  # taken by the first who has something to say, and never given back

    @property
    def hangs(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def is_over(self, until: str) -> bool:
        """An instant that nobody can read stops nothing."""
        try:
            return utc_now() >= parse_instant(until)
        except ScheduleError as error:
            self.say(f"--until: {error.mistake}; the command runs")
            return False

    def tell(self, told: Told) -> None:
        self._threads.append(threading.Thread(target=self._tell, args=(told,), daemon=True))
        self._threads[-1].start()

    def wait(self) -> int:
        """The exit code of the last ping."""
        self._threads[-1].join(self.timeout_ms / 1000)
        if self._threads[-1].is_alive():
            who = "the store" if self._where["api"] is None else "the API"
            self._report(f"lost: {who} has not answered within {self.timeout_ms / 1000:g} s")
            return _LOST
        return self._code

    def say(self, text: str) -> None:
        if not self._quiet:
            print(f"{f'fleetcron ping {self._name}'.rstrip()}: {text}", file=sys.stderr)

    def _tell(self, told: Told) -> None:
        self._code = _LOST
        clock = SystemClock()
        began_ms = clock.monotonic_ms()
        try:
            send = import_module("fleetcron.cli.pinging").send
            said, self._code = send(
                self._name, told, lambda: clock.monotonic_ms() - began_ms, self.timeout_ms / 1000, **self._where
            )
        except Exception as error:
            said = f"lost: {type(error).__name__}: {error}"
        if said:
            self._report(said)

    def _report(self, text: str) -> None:
        """What became of the start and of the end is one line, since cron makes a mail of it."""
        if self._reported.acquire(blocking=False):
            self.say(text)

    def _ms(self, text: str | None) -> int:
        try:
            return _TIMEOUT_MS if text is None else duration_ms(text)
        except ScheduleError as error:
            self.say(f"--timeout: {error.mistake}; it is {_TIMEOUT_MS / 1000:g} s")
            return _TIMEOUT_MS
