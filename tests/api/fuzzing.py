"""What schemathesis has to know about us: NDJSON, and that it should not saw off the branch on which it sits."""

import json
import os
from typing import Any

import schemathesis

OWN = "FLEETCRON_FUZZ_KEY_ID"
JOB = {"schedule": {"every": "1h"}, "run": {"command": ["true"]}}


@schemathesis.serializer("application/x-ndjson")
def ndjson(ctx: Any, value: Any) -> bytes:
    """The text as it is, as a name, as a field, and beside what can be read."""
    text = value if isinstance(value, str) else json.dumps(value)
    lines = [text, json.dumps({**JOB, "name": text}), json.dumps({**JOB, "name": "read", text: text}), '{"name": "x"']
    return "\n".join(lines).encode("utf-8", "replace")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """With its key revoked every answer would be the same 401. It finds its key in lists, too, and follows that."""
    own = os.environ.get(OWN)
    for name, value in (case.path_parameters or {}).items():
        if value == own:
            case.path_parameters[name] = "nobody"
