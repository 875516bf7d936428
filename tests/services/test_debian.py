"""Unpacking, with stand-ins for apt-get and dpkg: the real ones run whenever a service comes from Debian packages."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services import debian

ROOT = Path(__file__).parents[2]
APT_GET = """#!/bin/sh
echo "$*" >> "$HOME/calls"
case "$*" in
  *" update") mkdir -p "$HOME/listed" ;;
  *" install "*) test -d "$HOME/listed" && echo "Inst libfirst (1.0 Debian)" && echo "Inst second [0.9] (1.0 Debian)" ;;
  *" download libfirst second") touch libfirst.deb second.deb ;;
  *) exit 100 ;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/bin" && touch "$3/usr/bin/$(basename "$2" .deb)"
test ! -e "$HOME/full" || { echo "No space left on device"; exit 2; }
test ! -p "$HOME/gate" || { echo here > "$HOME/gate"; read -r _ < "$HOME/gate"; }
"""
UNPACK = "from tests.services import debian; debian.unpack('thing', ['second'], 1, print)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, script in {"apt-get": APT_GET, "dpkg": DPKG}.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def unpack(said: list[str]) -> list[str]:
    tree = debian.unpack("thing", ["second"], 7, said.append)
    assert tree.name == "thing"
    return sorted(file.name for file in tree.glob("usr/bin/*"))


def test_the_first_time_says_so_and_the_second_costs_nothing(home: Path) -> None:
    said: list[str] = []
    assert unpack(said) == ["libfirst", "second"]
    assert said == ["unpacking thing from Debian packages (first time, up to 7 MB) ..."]
    calls = (home / "calls").read_text()
    assert unpack(said) == ["libfirst", "second"]
    assert len(said) == 1
    assert (home / "calls").read_text() == calls
    assert not list(home.glob(".cache/**/*.deb"))


def test_what_an_interrupted_run_left_is_never_used(home: Path) -> None:
    (home / "full").touch()
    with pytest.raises(debian.NoPackages, match="No space left on device"):
        unpack([])
    assert list(home.glob(".cache/fleetcron-tests/*/thing.part/usr/bin/*"))
    (home / "full").unlink()
    stray = next(home.glob(".cache/fleetcron-tests/*/thing.part")) / "usr/bin/half-written"
    stray.touch()
    assert unpack([]) == ["libfirst", "second"]


def test_two_runs_at_once_unpack_once(home: Path) -> None:
    both = [subprocess.Popen([sys.executable, "-c", UNPACK], cwd=ROOT) for _ in range(2)]
    assert [run.wait() for run in both] == [0, 0]
    assert (home / "calls").read_text().count(" download ") == 1


def test_a_killed_run_is_waited_for_until_its_children_are_done(home: Path) -> None:
    os.mkfifo(home / "gate")
    killed = subprocess.Popen([sys.executable, "-c", UNPACK], cwd=ROOT)
    assert (home / "gate").read_text() == "here\n"  # dpkg is at work ...
    killed.kill()
    killed.wait()
    try:
        lock = next(home.glob(".cache/fleetcron-tests/lock"))
        with lock.open("w") as handle, pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        (home / "gate").write_text("go on\n")  # ... and now it is done
        (home / "gate").unlink()
    assert unpack([]) == ["libfirst", "second"]


def test_a_package_that_nobody_has_is_a_reason(home: Path) -> None:
    (home / "apt-get").write_text("#!/bin/sh\necho 'E: Unable to locate package second'\nexit 100\n")
    with pytest.raises(debian.NoPackages, match="Unable to locate package second"):
        unpack([])
