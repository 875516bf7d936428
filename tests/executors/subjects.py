"""Handlers for the tests. Imported by handler hosts only; the process of the tests never imports this."""

import asyncio
import faulthandler
import logging
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from fleetcron.executors.context import Context, GiveUp, Retry

_barriers: dict[int, threading.Barrier] = {}


async def noop(ctx: Context) -> None:
    pass


def plain_noop(ctx: Context) -> None:
    pass


def nothing() -> str:
    return "nothing asked"


def both(ctx: Context, payload: dict[str, Any]) -> Any:
    return [ctx.payload == payload, payload]


async def who(ctx: Context) -> dict[str, Any]:
    return {
        "tenant": ctx.tenant,
        "job": ctx.job,
        "job_id": ctx.job_id,
        "run_id": ctx.run_id,
        "scheduled_for": ctx.scheduled_for.isoformat(),
        "window": [moment.isoformat() for moment in ctx.window or ()],
        "covers": ctx.covers,
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "key": ctx.idempotency_key,
        "deadline": ctx.deadline and ctx.deadline.isoformat(),
        "cancelled": bool(ctx.cancelled),
        "store": ctx.home.store_url,
        "pid": os.getpid(),
        "settings": sorted(name for name in os.environ if name.startswith("FLEETCRON_")),
    }


class Broken(Exception):
    pass


async def breaks(ctx: Context) -> None:
    raise Broken("it is broken")


def breaks_in_a_thread(ctx: Context) -> None:
    ctx.log("before")
    raise ZeroDivisionError("nothing to divide by")


def gives_up(ctx: Context) -> None:
    raise GiveUp("no such customer")


async def retries(ctx: Context) -> None:
    raise Retry("not yet", after=7.5)


def snoozes(ctx: Context) -> None:
    ctx.snooze(90)


async def leaves(ctx: Context) -> None:
    sys.exit(3)


async def cancels_itself(ctx: Context) -> None:
    raise asyncio.CancelledError


def returns(ctx: Context) -> Any:
    match ctx.payload["what"]:
        case "large":
            return "x" * (64 * 1024)
        case "fits":
            return "x" * (64 * 1024 - 2)
        case "set":
            return {1, 2}
        case "nan":
            return float("nan")
        case "nul":
            return {"a\0b": "\0", "half": "\ud800"}
        case "deep":
            deep: list[Any] = []
            for _ in range(100_000):
                deep = [deep]
            return deep
        case "coroutine":
            return noop(ctx)
    return ctx.payload["what"]


async def prints(ctx: Context) -> None:
    mark = ctx.payload["mark"]
    for number in range(5):
        print(mark, "out", number)
        print(mark, "err", number, file=sys.stderr)
        await asyncio.sleep(0)
    logging.getLogger("shop").info("%s logged", mark)
    sys.stdout.buffer.write(f"{mark} bytes\n".encode())
    ctx.log(mark, "said", 1)


def prints_in_a_thread(ctx: Context) -> None:
    mark = ctx.payload["mark"]
    for number in range(5):
        print(mark, "out", number)
        time.sleep(0.001)
    print("half a pair \ud800, a NUL \0", flush=True)


def prints_a_lot(ctx: Context) -> None:
    line = "y" * 999 + "\n"
    for _ in range(ctx.payload["kilobytes"]):
        sys.stdout.write(line)
    print("the end")


async def progresses(ctx: Context) -> None:
    for step in range(100):
        ctx.progress(step / 100, f"step {step}")
    while not ctx.cancelled:
        await asyncio.sleep(0.01)


async def sleeps(ctx: Context) -> str:
    await asyncio.sleep(ctx.payload.get("seconds", 3600))
    return f"slept in {os.getpid()}"


def sleeps_in_a_thread(ctx: Context) -> str:
    """It looks at the flag, as a good function does."""
    asked = ctx.cancelled.wait(ctx.payload.get("seconds", 3600))
    return f"asked: {ctx.cancelled.reason}" if asked else f"slept in {os.getpid()}"


def spins(ctx: Context) -> None:
    """It looks at nothing."""
    while True:
        pass


def waits_in_c(ctx: Context) -> None:
    time.sleep(3600)


async def ignores(ctx: Context) -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("no")


async def cleans_up(ctx: Context) -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        print("cleaned")


def hogs(ctx: Context) -> None:
    """One regular expression that keeps the interpreter lock for years."""
    if "begun" in ctx.payload:
        Path(ctx.payload["begun"]).touch()
    re.match(r"(a+)+$", "a" * 64 + "b")


def crashes(ctx: Context) -> None:
    faulthandler._sigsegv()  # type: ignore[attr-defined]


async def vanishes(ctx: Context) -> None:
    os._exit(7)


def babbles(ctx: Context) -> None:
    """Writes into every descriptor that it finds: also into the socket to the worker."""
    for number in range(3, 64):
        try:
            os.write(number, b"\xff" * 64)
        except OSError:
            continue


def meets(ctx: Context) -> None:
    """Comes back when so many of them run at the same time."""
    parties = ctx.payload["parties"]
    _barriers.setdefault(parties, threading.Barrier(parties)).wait(30)


def meets_all(ctx: Context) -> int:
    """Comes back when so many of them run at the same time, in whatever processes."""
    place = Path(ctx.payload["place"])
    (place / str(ctx.run_id)).touch()
    while len(list(place.iterdir())) < ctx.payload["parties"] and not ctx.cancelled:
        time.sleep(0.01)
    return os.getpid()


def leaves_a_daemon(ctx: Context) -> int:
    """A process in a session of its own that lives on."""
    return subprocess.Popen(
        ["sleep", "3600"], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ).pid


async def pid_of(ctx: Context) -> int:
    return os.getpid()


def generator(ctx: Context) -> Any:
    yield 1


def three(a: object, b: object, c: object) -> None:
    pass


def keyword_only(ctx: Context, *, wanted: int) -> None:
    pass


def with_default(ctx: Context, often: int = 3) -> int:
    return often


class Callable:
    async def __call__(self, ctx: Context) -> str:
        return "called"


an_object = Callable()
not_a_function = 3
