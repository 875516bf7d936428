"""Where a service comes from: the first of five sources that has it, or the whole list of reasons.

1. an address in the environment   2. a wheel of the dev group   3. a program on this machine
4. Debian packages, unpacked       5. a container image
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from tests.services import debian, docker
from tests.services.service import Image, Program, Service

Say = Callable[[str], None]
Found = str | Program | Image  # an address is used as it is, a program is started, an image is run


class Missing(Exception):
    """This source does not have it; the text says why."""


class Nowhere(Exception):
    """No source has it; the text is for the user."""

    def __init__(self, service: Service, reasons: dict[str, str]) -> None:
        width = max(map(len, reasons))
        tried = "\n".join(f"  {source:<{width}}  {reason}" for source, reason in reasons.items())
        super().__init__(
            f"{service.name} is nowhere to be found. Tried, in this order:\n{tried}\n"
            f"Run this, then the tests again:\n  {service.remedy}\n"
            f"Or set {service.variable}, or leave it out on purpose: pytest --without {service.name}"
        )


def locate(service: Service, say: Say) -> Found:
    reasons: dict[str, str] = {}
    for source, look in SOURCES.items():
        try:
            return look(service, say)
        except Missing as reason:
            reasons[source] = str(reason)
    raise Nowhere(service, reasons)


def from_environment(service: Service, _: Say) -> str:
    if address := os.environ.get(service.variable):
        return address
    raise Missing(f"{service.variable} is not set")


def from_wheel(service: Service, _: Say) -> Program:
    if not service.wheel:
        raise Missing("no wheel has it")
    try:
        members = metadata.files(service.wheel) or []
    except metadata.PackageNotFoundError:
        raise Missing(f"{service.wheel} is not installed") from None
    for member in members:
        if f"/{member}".endswith(f"/{service.member}"):
            return Program(Path(os.path.normpath(str(member.locate()))))
    raise Missing(f"{service.wheel} has no {service.member}")


def from_machine(service: Service, _: Say) -> Program:
    return Program(fitting(service, [*installed(service, Path("/")), *on_path(service)]))


def from_debian(service: Service, say: Say) -> Program:
    if not service.debian:
        raise Missing("Debian has no package of it")
    try:
        tree = debian.unpack(service.name, service.debian, service.megabytes, say)
    except debian.NoPackages as reason:
        raise Missing(str(reason)) from None
    return Program(fitting(service, installed(service, tree), tree), tree)


def from_docker(service: Service, say: Say) -> Image:
    if not docker.engine_answers():
        raise Missing("no engine answers")
    say(f"running {service.name} from the image {service.image.name} (the first time downloads it) ...")
    return service.image


SOURCES: dict[str, Callable[[Service, Say], Found]] = {
    "environment": from_environment,
    "wheel": from_wheel,
    "machine": from_machine,
    "debian": from_debian,
    "docker": from_docker,
}


def installed(service: Service, root: Path) -> Iterator[Path]:
    # Before PATH: what Debian puts on PATH may be a script with absolute paths, or one that insists on its own user.
    for folder in service.folders:
        for program in service.programs:
            yield from sorted(root.glob(f"{folder}/{program}"))


def on_path(service: Service) -> Iterator[Path]:
    for program in service.programs:
        if path := shutil.which(program):
            yield Path(path)


def fitting(service: Service, candidates: Iterator[Path] | list[Path], tree: Path | None = None) -> Path:
    """The first candidate whose version will do."""
    unfit = []
    for path in candidates:
        if not service.version:
            return path
        said = version(Program(path, tree))
        if re.search(service.version, said):
            return path
        unfit.append(f"{path} says {said!r}")
    raise Missing("; ".join(unfit) or f"no {' or '.join(service.programs)}")


def version(program: Program) -> str:
    asked = subprocess.run(
        [program.path, "--version"],
        env=program.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return asked.stdout.strip().partition("\n")[0]
