"""A database that is prepared once, and a copy of it as often as a test needs it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

from tests.services.postgres import Template

Copy: TypeAlias = Callable[[], AbstractContextManager[str]]  # the URL of a new one


def sqlite_copies(folder: Path, prepare: Callable[[str], object]) -> Copy:
    base = folder / "base.db"
    prepare(f"sqlite:///{base}")

    @contextmanager
    def copy() -> Iterator[str]:
        shutil.copyfile(base, folder / "copy.db")  # a closed file has no WAL
        yield f"sqlite:///{folder / 'copy.db'}"
        for left in folder.glob("copy.db*"):
            left.unlink()

    return copy


@contextmanager
def postgres_copies(server: str, prepare: Callable[[str], None]) -> Iterator[Copy]:
    template = Template(server, prepare)
    yield template.copy
    template.drop()
