"""Where the next page of a list begins, as one opaque text."""

import base64
import json
from typing import Any


def cursor_of(*parts: Any) -> str:
    """Only who makes it knows what is in it: the API, and the command line that is shipped with it."""
    return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode().rstrip("=")
