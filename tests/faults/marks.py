"""The steps at which somebody is killed, as the sources name them, and who kills there."""

import re
from pathlib import Path
from typing import Final

import fleetcron

_MARKED: Final = re.compile(r'^ *step\("([^"]+)"\)$', re.MULTILINE)
_SOURCES: Final = Path(fleetcron.__file__).parent

STORE: Final = "store"  # the steps of every transaction
PLANNING: Final = ("adopt", "advance", "amend", "desk", "gaps", "node", "plan", "shards", "tick")  # test_steps.py
WORK: Final = ("claim", "finish", "hand_back", "output", "promote", "sweep", "worker")  # test_work_steps.py
ASKED: Final = (
    "backfill",
    "cancel",
    "control",
    "discard",
    "limits",
    "ping",
    "replay",
    "trigger",
)  # test_asked_steps.py


def marked(*verbs: str) -> set[str]:
    """Of these verbs: the first word of a step."""
    found = {name for path in _SOURCES.rglob("*.py") for name in _MARKED.findall(path.read_text())}
    return {name for name in found if name.partition(".")[0] in verbs} if verbs else found
