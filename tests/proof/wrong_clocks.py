"""Machines whose clock is wrong, and can be set while their processes run (libfaketime)."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults.nursery import Nursery, nursery
from tests.services import debian
from tests.services.guard import Guard

SYSTEM = Path("/usr/lib")


@dataclass
class Machine:
    """Where processes are born whose clock is wrong. What they measure time with is right."""

    cradle: Nursery
    file: Path

    def set(self, seconds: float) -> None:
        """From now on it is wrong by so much."""
        part = self.file.with_suffix(".part")
        part.write_text(f"{seconds:+.3f}\n")
        part.rename(self.file)  # it is read at every look at the clock: never half a number


@dataclass
class Machines:
    library: Path
    guard: Guard
    folder: Path
    stack: ExitStack
    made: list[Machine] = field(default_factory=list)

    def machine(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> Machine:
        file = self.folder / f"clock-{len(self.made)}"
        file.write_text(f"{seconds:+.3f}\n")
        with monkeypatch.context() as changed:
            changed.setenv("LD_PRELOAD", str(self.library))
            changed.setenv("FAKETIME_TIMESTAMP_FILE", str(file))
            changed.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            changed.setenv("FAKETIME_NO_CACHE", "1")
            made = nursery(self.guard, self.folder, "tests.proof.wrong_clock_node", waits=False)
            self.made.append(Machine(self.stack.enter_context(made), file))
        return self.made[-1]


@pytest.fixture
def machines(guard: Guard, tmp_path: Path) -> Iterator[Machines]:
    with ExitStack() as stack:
        yield Machines(libfaketime(), guard, tmp_path, stack)


def libfaketime() -> Path:
    """Of this machine, or unpacked. It is never left out in silence."""
    for found in SYSTEM.glob("*/faketime/libfaketime.so.1"):
        return found
    try:
        tree = debian.unpack("faketime", ("libfaketime",), 1, print)
    except debian.NoPackages as reason:
        pytest.fail(f"libfaketime cannot be had here: {reason}\nInstall it: apt-get install libfaketime", pytrace=False)
    [library] = tree.glob("usr/lib/*/faketime/libfaketime.so.1")
    return library


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
