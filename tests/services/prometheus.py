"""promtool, which checks and unit-tests the alert rules as Prometheus itself reads them."""

import subprocess
from pathlib import Path

import pytest

from tests.services.provision import Provision
from tests.services.service import Image, Program, Service

PROMETHEUS = Service(
    name="prometheus",
    programs=("promtool",),
    folders=("usr/bin",),
    debian=("prometheus",),
    megabytes=23,
    image=Image(name="prom/prometheus"),
)


class Promtool:
    def __init__(self, argv: list[str], program: Program | None = None) -> None:
        self._argv = argv
        self._env = program.environment() if program else None

    def run(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run promtool in `folder`; the files it is to read lie there."""
        argv = [part.format(folder=folder) for part in self._argv]
        return subprocess.run(
            [*argv, *arguments],
            cwd=folder,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@pytest.fixture(scope="session")
def promtool(provision: Provision) -> Promtool:
    match provision.find(PROMETHEUS):
        case Program() as program:
            return Promtool([str(program.path)], program)
        case Image(name=image):
            mount = ["--volume", "{folder}:{folder}:ro", "--workdir", "{folder}", "--network", "none"]
            return Promtool(["docker", "run", "--rm", *mount, "--entrypoint", "/bin/promtool", image])
        case address:  # no server is asked, so the address is that of a program: file:///opt/prometheus/promtool
            return Promtool([address.removeprefix("file://")])
