"""What a change makes of a job's document. A patch is JSON Merge Patch (RFC 7396), except where a job knows better.

To merge blindly would be wrong in two places. A `run` of another kind, or a schedule's entry of another kind, has
nothing in common with the one before and replaces it. And a schedule is stored as a list, which a merge patch can only
replace, while people write a single entry without one: an object means that entry.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fleetcron.api.problems import wrong

_SHADOW: Final = "POST /jobs/{name}/hand-over ends a shadow, POST /jobs/{name}/shadow begins one"
_RUNS: Final = ("python", "command", "http", "publish")
_ENTRIES: Final = ("cron", "every", "at")


def patched(before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`before` is what a definition writes of itself."""
    left, said = dict(before), dict(patch)
    keeps_shadow(before, patch)
    if "type" in said:
        left.pop("derived", None)  # it is chosen from now on
    if not _kinds(said.get("run"), _RUNS) <= _kinds(left["run"], _RUNS):
        left.pop("run")
    if isinstance(said.get("schedule"), dict):
        said["schedule"] = _entry(left.pop("schedule"), said["schedule"])
    found: dict[str, Any] = _merged(left, said)
    return found


def replaced(before: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Whole, except for whose it is: who mends a job by hand does not take it from those who keep it."""
    keeps_shadow(before, document)
    return {"managed_by": before["managed_by"], **document}


def keeps_shadow(before: Mapping[str, Any], said: Mapping[str, Any]) -> None:
    """Whether a job is in shadow is no field that is edited: the ticks until the hand-over are the old scheduler's."""
    if "shadow" in said and (said["shadow"] or False) != before["shadow"]:
        raise wrong("/shadow", f"is {json.dumps(before['shadow'])}: a change of fields leaves it so", _SHADOW)


def _entry(before: list[dict[str, Any]], patch: dict[str, Any]) -> dict[str, Any]:
    """Not in a list: mistakes are then told where they were written."""
    if len(before) > 1:
        detail = f"has {len(before)} entries, and an object does not say which of them it means"
        raise wrong("/schedule", detail, "send the list of all its entries; what it has now is in GET /jobs/{name}")
    left, said = dict(before[0]), dict(patch)
    if not _kinds(said, _ENTRIES) <= _kinds(left, _ENTRIES):
        return said
    if "derived" in left:  # what somebody says now was chosen, and not derived
        left["derived"] = [name for name in left["derived"] if said.get(name) is None]
    if _is_instant(said.get("at")):
        left.pop("timezone", None)  # which is that of a local time
    found: dict[str, Any] = _merged(left, said)
    return found


def _is_instant(text: object) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text.strip()).tzinfo is not None
    except ValueError:
        return False


def _kinds(document: object, kinds: tuple[str, ...]) -> set[str]:
    return {kind for kind in kinds if isinstance(document, dict) and document.get(kind) is not None}


def _merged(before: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    found = dict(before) if isinstance(before, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found
