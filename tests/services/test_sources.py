"""The order of the sources, and what the user reads when none of them has the service."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from redis import Redis

from tests.services import debian, docker
from tests.services.catalog import SERVICES
from tests.services.guard import Guard
from tests.services.service import Image, Program, Service
from tests.services.sources import Nowhere, from_wheel, locate
from tests.services.valkey import VALKEY

# Stands in for the engine: `info` answers, `run` is the real server on the published port, `rm` is written down.
DOCKER = """#!/bin/sh
echo "$*" >> {log}
case "$1" in
  run) published=${{6#127.0.0.1:}}; exec {server} --bind 127.0.0.1 --port "${{published%:*}}" ;;
esac
"""
THING = Service(
    name="thing",
    programs=("thingd",),
    folders=("usr/lib/thing",),
    version=r"^thing 2\.",
    wheel="pytest",
    member="bin/py.test",
    debian=("thing-server",),
    image=Image(name="thing:2", port=99),
)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has nothing: the folder is its PATH, and Debian has no packages."""

    def no_packages(*_: object) -> Path:
        raise debian.NoPackages("E: Unable to locate package thing-server")

    monkeypatch.setattr(debian, "unpack", no_packages)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(THING.variable, raising=False)
    return tmp_path


def install(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{says}\n")
    (folder / name).chmod(0o755)
    return folder / name


def silent(line: str) -> None:
    pytest.fail(f"nothing to say, but said {line!r}")


def test_an_address_in_the_environment_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEETCRON_TEST_THING_URL", "thing://elsewhere")
    assert locate(THING, silent) == "thing://elsewhere"


def test_then_a_wheel(bare: Path) -> None:
    install(bare, "thingd", "echo thing 2.0")
    found = locate(THING, silent)
    assert isinstance(found, Program)
    assert found.path.name == "py.test"
    assert os.access(found.path, os.X_OK)


def test_then_the_machine_if_the_version_will_do(bare: Path) -> None:
    thing = replace(THING, wheel="")
    program = install(bare, "thingd", "echo thing 2.0")
    assert locate(thing, silent) == Program(program)
    install(bare, "thingd", "echo thing 1.9")
    with pytest.raises(Nowhere, match=r"thingd says 'thing 1\.9'"):
        locate(thing, silent)


def test_then_debian(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = bare / "tree"
    program = install(tree / "usr/lib/thing", "thingd", "echo thing 2.0")
    monkeypatch.setattr(debian, "unpack", lambda *_: tree)
    assert locate(replace(THING, wheel=""), silent) == Program(program, tree)


def test_then_docker(bare: Path) -> None:
    install(bare, "docker", 'test "$1" = info')
    said: list[str] = []
    assert locate(replace(THING, wheel=""), said.append) == THING.image
    assert said == ["running thing from the image thing:2 (the first time downloads it) ..."]


def test_otherwise_the_user_reads_what_was_tried_and_what_to_run(bare: Path) -> None:
    with pytest.raises(Nowhere) as caught:
        locate(replace(THING, wheel=""), silent)
    assert str(caught.value).splitlines() == [
        "thing is nowhere to be found. Tried, in this order:",
        "  environment  FLEETCRON_TEST_THING_URL is not set",
        "  wheel        no wheel has it",
        "  machine      no thingd",
        "  debian       E: Unable to locate package thing-server",
        "  docker       no engine answers",
        "Run this, then the tests again:",
        "  sudo apt-get update && sudo apt-get install -y --no-install-recommends thing-server",
        "Or set FLEETCRON_TEST_THING_URL, or leave it out on purpose: pytest --without thing",
    ]


def test_a_container_is_started_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, log = from_wheel(VALKEY, silent).path, tmp_path / "calls"
    install(tmp_path, "docker", DOCKER.format(log=log, server=server))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    guard = Guard()
    try:
        with Redis.from_url(docker.start(VALKEY, guard)) as client:
            assert client.ping()
    finally:
        guard.end()
    run, remove = log.read_text().splitlines()
    name = remove.removeprefix("rm --force ")
    assert run.startswith(f"run --rm --name {name} --publish 127.0.0.1:")
    assert run.endswith(":6379 valkey/valkey:9-alpine")


def test_every_service_can_be_had_somewhere() -> None:
    for name, service in SERVICES.items():
        assert service.name == name
        assert service.wheel or service.debian
        assert service.image.name
