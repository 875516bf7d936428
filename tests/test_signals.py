"""SIGTERM and Ctrl-C: the first one asks, one more a while later ends the process."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import IO

import pytest

NODE = """
import asyncio, logging, sys
from fleetcron.clock import SystemClock
from fleetcron.node import stop_on_signals

class Clock(SystemClock):
    now = 0
    def monotonic_ms(self):
        self.now += int(sys.argv[1])  # between two signals
        print("looked", flush=True)
        return self.now

async def run():
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    stop = asyncio.Event()
    stop_on_signals(stop, Clock())
    print("ready", flush=True)
    await asyncio.Event().wait()  # a drain that goes on

asyncio.run(run())
"""
Begin = Callable[[int], "subprocess.Popen[str]"]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """A node; its clock goes on by so much between two signals."""
    begun = []

    def one(between_ms: int) -> "subprocess.Popen[str]":
        node = subprocess.Popen([sys.executable, "-c", NODE, str(between_ms)], stdout=subprocess.PIPE, text=True)
        begun.append(node)
        assert said(node).readline() == "ready\n"
        return node

    yield one
    for node in begun:
        node.kill()
        node.communicate()


def said(node: "subprocess.Popen[str]") -> IO[str]:
    assert node.stdout is not None
    return node.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_ends_it_when_it_comes_a_while_later(begin: Begin, number: signal.Signals) -> None:
    node = begin(2_001)
    node.send_signal(number)
    assert [said(node).readline() for _ in range(2)] == ["looked\n", f"{number.name}: stopping\n"]
    node.send_signal(number)
    assert said(node).readline() == "looked\n"
    assert said(node).read() == f"{number.name} again: ending at once, and not in order; what ran is tried again\n"
    assert node.wait(30) == -number


def test_of_two_in_a_row_the_second_costs_nothing(begin: Begin) -> None:
    """Terminals and wrappers often send both."""
    node = begin(500)
    for at in range(5):  # 0, 500, … 2,000 ms after the first
        node.send_signal(signal.SIGTERM)
        assert said(node).readline() == "looked\n"
        assert at or said(node).readline() == "SIGTERM: stopping\n"
    node.send_signal(signal.SIGTERM)
    assert "".join(said(node)).startswith("looked\nSIGTERM again")
