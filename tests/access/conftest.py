"""The databases of the store's own tests, and the command in an empty folder."""

from tests.cli.conftest import fleetcron, quick
from tests.store.conftest import postgres18_url, sqlite_file_url, store_template18

__all__ = ["fleetcron", "postgres18_url", "quick", "sqlite_file_url", "store_template18"]
