"""From a URL to the ground of a torture."""

from fleetcron.clock import Clock
from fleetcron.config.kinds import BadValue, DatabaseUrl
from fleetcron.errors import StoreError
from fleetcron.torture.ground import Ground
from fleetcron.torture.sqlite_ground import SqliteGround


def ground_of(url: str, name: str, clock: Clock) -> Ground:
    """Nothing is touched yet. Raises if this cannot be tortured."""
    try:
        url = str(DatabaseUrl().read(url))
    except BadValue as error:
        raise StoreError(error.message, hint=error.hint) from None
    if url.endswith(":memory:"):
        raise StoreError("a database in memory belongs to one process", hint="write sqlite:///FILE")
    if url.startswith("sqlite:///"):
        return SqliteGround(url.removeprefix("sqlite:///"), name, clock)
    try:
        from fleetcron.torture.postgres_ground import PostgresGround  # the driver is an extra
    except ModuleNotFoundError as missing:
        if missing.name != "asyncpg":
            raise
        hint = "install the extra fleetcron[postgres]: `pip install 'fleetcron[postgres]'`"
        raise StoreError("the PostgreSQL driver is not installed", hint=hint) from missing
    return PostgresGround(url, name, clock)
