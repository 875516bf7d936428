"""Every engine, and the command in an empty folder."""

from tests.cli.conftest import fleetcron, quick
from tests.store.conftest import postgres18_url, sqlite_memory_url, store_template18

__all__ = ["fleetcron", "postgres18_url", "quick", "sqlite_memory_url", "store_template18"]
