"""A module whose functions take plain payloads: whoever imports it needs no pydantic."""

import sys
from collections.abc import Mapping
from typing import Any

from fleetcron import Fleetcron
from fleetcron.executors.context import Context

app = Fleetcron(name="unbilled")


@app.job(every="1h", payload={"a": 1})
def has_pydantic(ctx: Context, payload: Mapping[str, Any]) -> bool:
    return "pydantic" in sys.modules
