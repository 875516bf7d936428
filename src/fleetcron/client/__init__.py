"""A client of the API, blocking and asynchronous, for programs that create and steer jobs.

`from fleetcron import Client, AsyncClient`. What can go wrong is in `fleetcron.client.errors`; results are plain dicts
whose types are in `job_shapes`, `run_shapes` and `fleet_shapes`.
"""

from typing import TYPE_CHECKING

from fleetcron.client.errors import (
    ApiError,
    Closed,
    Conflict,
    Forbidden,
    NotFound,
    Refused,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

if TYPE_CHECKING:
    from fleetcron.client.asynchronous import AsyncClient
    from fleetcron.client.blocking import Client

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "Closed",
    "Conflict",
    "Forbidden",
    "NotFound",
    "Refused",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
]


def __getattr__(name: str) -> object:
    """Who waits does not load the library of those who do not."""
    if name == "Client":
        from fleetcron.client.blocking import Client

        return Client
    if name == "AsyncClient":
        from fleetcron.client.asynchronous import AsyncClient

        return AsyncClient
    raise AttributeError(f"module 'fleetcron.client' has no attribute '{name}'")
