"""What a patch makes of a job's document: JSON Merge Patch (RFC 7396). A `run` of another kind has nothing in common
with the one before, and replaces it."""

import json
from collections.abc import Mapping
from typing import Any, Final

from fleetcron.api.problems import wrong

_SHADOW: Final = "POST /jobs/{name}/hand-over ends a shadow, POST /jobs/{name}/shadow begins one"
_RUNS: Final = ("python", "command", "http", "publish")


def patched(before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`before` is what a definition writes of itself."""
    left, said = dict(before), dict(patch)
    if "shadow" in said and (said["shadow"] or False) != left["shadow"]:
        raise wrong("/shadow", f"is {json.dumps(left['shadow'])}: a change of fields leaves it so", _SHADOW)
    if "type" in said:
        left.pop("derived", None)  # it is chosen from now on
    if not _kinds(said.get("run"), _RUNS) <= _kinds(left["run"], _RUNS):
        left.pop("run")
    found: dict[str, Any] = _merged(left, said)
    return found


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
