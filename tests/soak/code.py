"""What a round is played with. What was found with other code says nothing about this one, and a change of what is not
loaded (docs, another test, a command) changes nothing.

A suite in real processes may meet everything, so it is made of the whole source and of all that its tests share. One in
a single process is made of what that process loads, which Python itself can tell.
"""

import json
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ("src", "tests/faults", "tests/proof", "tests/scheduler", "tests/services", "tests/times")
SQL: Final = "src/fleetcron/store"  # statements and migrations, which are read and not imported; worlds have SQLite
WORLDS: Final = "tests.simulate.campaign"
VARIANTS: Final = "tests.simulate.scoring"
_LOADED: Final = """
import importlib, json, sys
for name in sys.argv[1].split(","):
    importlib.import_module(name)
print(json.dumps([each.__file__ for each in list(sys.modules.values()) if getattr(each, "__file__", None)]))
"""


@cache
def fingerprint(made_of: str = "") -> str:
    """Of modules with all that they load, or of everything."""
    found = sha256()
    for path in sorted(loaded(made_of) if made_of else _everything()):
        found.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def _everything() -> set[Path]:
    paths = (path for source in SOURCES for path in (ROOT / source).rglob("*"))
    return {path for path in paths if path.suffix in (".py", ".sql")}


@cache
def loaded(made_of: str) -> set[Path]:
    answer = subprocess.run(
        [sys.executable, "-c", _LOADED, made_of], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = map(Path, json.loads(answer.stdout))
    own = {path for path in paths if path.is_relative_to(ROOT / "src") or path.is_relative_to(ROOT / "tests")}
    return own | {path for path in (ROOT / SQL).rglob("*.sql") if path.parent.name != "postgres"}
