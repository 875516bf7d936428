"""Many rows as one parameter: JSON text, the same for both engines."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from fleetcron.model.shard import Held


def rows(items: Iterable[Mapping[str, Any]]) -> str:
    return json.dumps(list(items), separators=(",", ":"))


def held_rows(held: Iterable[Held]) -> str:
    return rows({"region": each.region, "shard": each.shard, "term": each.term} for each in held)


def ids(items: Iterable[int]) -> str:
    return "[" + ",".join(map(str, items)) + "]"


def texts(items: Iterable[str]) -> str:
    return json.dumps(list(items), separators=(",", ":"))
