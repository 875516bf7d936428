"""Whether an API is to be asked or a database. Apart from `connection.py`: a line of a crontab waits for no imports."""

import os
from typing import Final

API_VARIABLE: Final = "FLEETCRON_API_URL"


def api_of(api: str | None, database: str | None) -> str | None:
    """The API, if that is where to look. The variable counts unless a flag names a database."""
    return api or (os.environ.get(API_VARIABLE) or None if database is None else None)
