"""Debian packages without root: downloaded and unpacked below ~/.cache/fleetcron-tests, not installed.

apt gets package lists of its own there, so this works where nobody ever ran `apt-get update`, and for any user. Only a
complete tree ever bears its final name, and one lock covers all of it: a second run waits, and what an interrupted one
left behind is removed by the next.
"""

import fcntl
import os
import platform
import pwd
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

CACHE = Path("~/.cache/fleetcron-tests")
LISTS_STAY_FRESH_S = 3600


class NoPackages(Exception):
    """These packages cannot be had here; the text says why."""


def unpack(name: str, packages: Sequence[str], megabytes: int, say: Callable[[str], None]) -> Path:
    """The folder with `packages` and whatever they need that this machine does not have."""
    missing = [tool for tool in ("apt-get", "dpkg") if shutil.which(tool) is None]
    if missing:
        raise NoPackages(f"no {' and no '.join(missing)} on this machine")
    cache = CACHE.expanduser()
    tree = cache / release() / name
    if tree.is_dir():
        return tree
    try:
        tree.parent.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise NoPackages(f"{cache} is not to be written: {reason}") from None
    with only_one(cache / "lock", say):
        if tree.is_dir():  # the run that we waited for made it
            return tree
        say(f"unpacking {name} from Debian packages (first time, up to {megabytes} MB) ...")
        downloads = fetch(cache / "apt", packages)
        part = tree.with_name(f"{name}.part")
        shutil.rmtree(part, ignore_errors=True)
        for package in sorted(downloads.glob("*.deb")):
            run("dpkg", "-x", str(package), str(part))
        part.rename(tree)
        shutil.rmtree(downloads)
    return tree


def fetch(apt: Path, packages: Sequence[str]) -> Path:
    """Download the packages, with the dependencies that are not installed, and say where they are."""
    lists, archives = apt / "lists", apt / "cache" / "archives"
    downloads = apt / "-".join(packages)
    for folder in (lists / "partial", archives / "partial", downloads):
        folder.mkdir(parents=True, exist_ok=True)
    options = [
        f"-oDir::State::Lists={lists}",
        f"-oDir::Cache={apt / 'cache'}",
        f"-oAPT::Sandbox::User={pwd.getpwuid(os.getuid()).pw_name}",  # root's _apt could not enter a home folder
        "-oDebug::NoLocking=1",  # apt's own lock is root's; ours is held
        "-oAcquire::Languages=none",
    ]
    # Lists and downloads outlive an interrupted run, so the next one goes on; but only for a while, since a newer
    # version of a package must not be unpacked over an older one.
    update, stamp = "", apt / "updated"
    try:
        if not stamp.exists() or time.time() - stamp.stat().st_mtime > LISTS_STAY_FRESH_S:
            # One source that does not answer makes this fail although Debian's own did: the next step is the judge.
            update = run("apt-get", *options, "-q", "update", check=False)
            for package in downloads.glob("*.deb"):
                package.unlink()
            stamp.touch()
        plan = run("apt-get", *options, "-q", "install", "-s", "--no-install-recommends", *packages)
        wanted = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
        if not wanted:
            raise NoPackages(f"{' '.join(packages)} is installed, but without a program that would do")
        run("apt-get", *options, "-q", "download", *wanted, cwd=downloads)
    except NoPackages as reason:
        stamp.unlink(missing_ok=True)  # perhaps the lists were old or not complete
        complaints = [line for line in update.splitlines() if line.startswith(("E:", "W:"))]
        raise NoPackages(" / ".join([str(reason), *complaints[:3]])) from None
    return downloads


def run(*argv: str, cwd: Path | None = None, check: bool = True) -> str:
    """Run a command, give what it said; if it fails, the last lines of that are the reason."""
    done = subprocess.run(
        argv,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        close_fds=False,  # it inherits the lock, see `only_one`
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if check and done.returncode != 0:
        words = [word for word in argv if not word.startswith("-o")]
        raise NoPackages(f"`{' '.join(words[:8])}` failed: {' / '.join(done.stdout.strip().splitlines()[-3:])}")
    return done.stdout


def release() -> str:
    """A home folder may be shared by machines; each release and architecture has its own trees."""
    system = platform.freedesktop_os_release()
    return f"{system['ID']}-{system.get('VERSION_CODENAME', 'unstable')}-{platform.machine()}"


@contextmanager
def only_one(lock: Path, say: Callable[[str], None]) -> Iterator[None]:
    with lock.open("w") as handle:
        # The kernel lets go of the lock when nobody has the file open any more. Our apt-get and dpkg have it too: when
        # this process is killed, they may still be writing, and the next run waits until they are done.
        os.set_inheritable(handle.fileno(), True)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another test run that is unpacking Debian packages ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
