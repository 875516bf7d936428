"""What the jobs of these tests do: they say when they begin and end, and the kernel is their witness.

A handler appends a line to the log in $WORK_TRUTH when it begins and when it ends, and holds a lock on a file of its
run and on one of its job meanwhile. The kernel lets go of a lock when its process dies, however it dies: whoever finds
one taken runs beside another attempt of its run, or beside another run of its job, and says so.

Where one sleeps, that is the work that it does, for as long as its payload says: no test waits by it.

Only the standard library, so that `python -I -S work_handlers.py` is a command that starts quickly.
"""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

FOLDER, NODE = "WORK_TRUTH", "WORK_NODE"
MEGABYTE = ("x" * 1023 + "\n") * 1024
ALLOWED = "allowed"  # jobs whose name begins so may run beside themselves


def say(**line: Any) -> None:
    text = json.dumps({**line, "at_ms": time.time_ns() // 1_000_000, "pid": os.getpid()}) + "\n"
    log = os.open(f"{os.environ[FOLDER]}/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    os.write(log, text.encode())  # one write: never half a line
    os.close(log)


@contextmanager
def alone(name: str, who: dict[str, Any]) -> Iterator[None]:
    """Hold the lock of this name; say it if somebody else has it."""
    file = os.open(f"{os.environ[FOLDER]}/{name}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(say="beside", what=name, **who)
        yield
    finally:
        os.close(file)


@contextmanager
def told(run: int, attempt: int, job: str) -> Iterator[None]:
    who = {"run": run, "attempt": attempt, "job": job, "node": os.environ[NODE]}
    with alone(f"run-{run}", who), alone(f"job-{job}" if not job.startswith(ALLOWED) else f"any-{run}", who):
        say(say="start", **who)
        how = "stopped"
        try:
            yield
            how = "done"
        except Exception:
            how = "failed"
            raise
        finally:
            say(say="end", how=how, **who)


async def works(ctx: Any) -> None:
    with told(ctx.run_id, ctx.attempt, ctx.job):
        await asyncio.sleep(ctx.payload["s"])


def blocks(ctx: Any) -> None:
    """A plain function that stops when it is asked to."""
    with told(ctx.run_id, ctx.attempt, ctx.job):
        ctx.log("begun")
        if ctx.cancelled.wait(ctx.payload["s"]):
            raise SystemExit


def fails_at_first(ctx: Any) -> None:
    """It says something, so that not only one job does: whoever is to die when it stores output may never get that."""
    with told(ctx.run_id, ctx.attempt, ctx.job):
        ctx.log("begun")
        time.sleep(ctx.payload["s"])
        if ctx.attempt == 1:
            raise RuntimeError("the first time it fails")


def does_not_stop(ctx: Any) -> None:
    """It catches what is thrown at it."""
    with told(ctx.run_id, ctx.attempt, ctx.job):
        until = time.monotonic() + float(ctx.payload["s"])
        while time.monotonic() < until:
            try:
                time.sleep(0.01)
            except BaseException:
                continue


def forks(ctx: Any) -> None:
    """A daemon of its own session, one that ignores SIGTERM, and a handler that hangs."""
    with told(ctx.run_id, ctx.attempt, ctx.job):
        for text in ("sleep 300", "trap '' TERM; while :; do sleep 1; done"):
            child = subprocess.Popen(["/bin/sh", "-c", text], start_new_session=True)
            say(say="child", child=child.pid, run=ctx.run_id)
        time.sleep(ctx.payload["s"])


def prints(ctx: Any) -> None:
    """As much as it is told to."""
    with told(ctx.run_id, ctx.attempt, ctx.job):
        for _ in range(ctx.payload["mb"]):
            print(MEGABYTE, end="")


def command() -> None:
    """The same as a program: `works SECONDS`, `ignores SECONDS`, `leaves_a_child`, `prints MEGABYTES`."""
    does, *given = sys.argv[1:]
    with told(int(os.environ["FLEETCRON_RUN_ID"]), int(os.environ["FLEETCRON_ATTEMPT"]), os.environ["FLEETCRON_JOB"]):
        COMMANDS[does](*given)


def _ignores(seconds: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; sleep 300"], start_new_session=True)
    say(say="child", child=child.pid, run=int(os.environ["FLEETCRON_RUN_ID"]))
    time.sleep(float(seconds))


def _leaves_a_child() -> None:
    child = subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; sleep 300"], start_new_session=True)
    say(say="child", child=child.pid, run=int(os.environ["FLEETCRON_RUN_ID"]))


def _prints(megabytes: str) -> None:
    for _ in range(int(megabytes)):
        print(MEGABYTE, end="")


COMMANDS: dict[str, Callable[..., None]] = {
    "works": lambda seconds: time.sleep(float(seconds)),
    "ignores": _ignores,
    "leaves_a_child": _leaves_a_child,
    "prints": _prints,
}

if __name__ == "__main__":
    command()
