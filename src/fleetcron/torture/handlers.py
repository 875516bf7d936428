"""What the jobs of a torture do: they say when they begin and end, and the kernel is their witness.

A handler appends a line to the log in $TORTURE_FOLDER when it begins and when it ends, and holds a lock on a file of
its run, and on one that everybody shares who must not run beside it. The kernel lets go of a lock when its process
dies, however it dies: whoever finds one taken runs beside another attempt, and says so.
"""

import asyncio
import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from fleetcron.clock import SystemClock

FOLDER: Final = "TORTURE_FOLDER"
NODE: Final = "TORTURE_NODE"
LOG: Final = "handlers.jsonl"
_CLOCK: Final = SystemClock()


async def works(ctx: Any) -> None:
    with _told(ctx.run_id, ctx.attempt, ctx.job, ctx.payload.get("alone")):
        await asyncio.sleep(ctx.payload["s"])


def blocks(ctx: Any) -> None:
    """A plain function that stops when it is asked to."""
    with _told(ctx.run_id, ctx.attempt, ctx.job, ctx.payload.get("alone")):
        if ctx.cancelled.wait(ctx.payload["s"]):
            raise SystemExit


def fails_at_first(ctx: Any) -> None:
    with _told(ctx.run_id, ctx.attempt, ctx.job, ctx.payload.get("alone")):
        time.sleep(ctx.payload["s"])
        if ctx.attempt == 1:
            raise RuntimeError("the first time it fails")


def fails(ctx: Any) -> None:
    with _told(ctx.run_id, ctx.attempt, ctx.job, ctx.payload.get("alone")):
        time.sleep(ctx.payload["s"])
        raise RuntimeError("it always fails")


def command() -> None:
    """The same as a program: `SECONDS NAME`, of those who must not run beside it."""
    seconds, alone = sys.argv[1:]
    run, attempt = int(os.environ["FLEETCRON_RUN_ID"]), int(os.environ["FLEETCRON_ATTEMPT"])
    with _told(run, attempt, os.environ["FLEETCRON_JOB"], alone):
        time.sleep(float(seconds))


@contextmanager
def _told(run: int, attempt: int, job: str, alone: str | None) -> Iterator[None]:
    who = {"run": run, "attempt": attempt, "job": job, "node": os.environ[NODE]}
    with ExitStack() as locks:
        for name in (f"run-{run}", *([f"alone-{alone}"] if alone else [])):
            locks.enter_context(_locked(name, who))
        _say(say="start", **who)
        how = "stopped"
        try:
            yield
            how = "done"
        except Exception:
            how = "failed"
            raise
        finally:
            _say(say="end", how=how, **who)


@contextmanager
def _locked(name: str, who: dict[str, Any]) -> Iterator[None]:
    """Hold the lock of this name; say it if somebody else has it."""
    file = os.open(f"{os.environ[FOLDER]}/locks/{name}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(say="beside", what=name, **who)
        yield
    finally:
        os.close(file)


def _say(**line: Any) -> None:
    text = json.dumps({**line, "at_us": _CLOCK.now_us(), "pid": os.getpid()}) + "\n"
    log = os.open(f"{os.environ[FOLDER]}/{LOG}", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(log, text.encode())  # one write: never half a line
    finally:
        os.close(log)


if __name__ == "__main__":
    command()
