"""The files of the modules that this process has imported, as they were then.

Python imports a module once. Whoever looks for a function that was written since finds the old module, for as long as
the process lives; so the process has to know that it is outdated.
"""

import os
import sys
from typing import Final

_OURS: Final = "fleetcron"  # a new release is for the next start of the whole node


class Imported:
    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int] | None] = {}

    def note(self) -> None:
        """Look at the files of modules that are new."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file not in self._files and name.partition(".")[0] != _OURS:
                self._files[file] = _seen(file)

    def have_changed(self) -> bool:
        """A file that is gone does not count: its module may have been imported from a place that was taken away."""
        return any((now := _seen(file)) is not None and now != then for file, then in self._files.items())


def _seen(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
