"""Many rows as one parameter: JSON text, the same for both engines."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fleetcron.model.shard import Held

_text: Final = json.JSONEncoder(separators=(",", ":")).encode  # json.dumps would make one for every call


def rows(items: Iterable[Mapping[str, Any]]) -> str:
    return _text(list(items))


def held_rows(held: Iterable[Held]) -> str:
    return rows({"region": each.region, "shard": each.shard, "term": each.term} for each in held)


def ids(items: Iterable[int]) -> str:
    return "[" + ",".join(map(str, items)) + "]"


def texts(items: Iterable[str]) -> str:
    return _text(list(items))
