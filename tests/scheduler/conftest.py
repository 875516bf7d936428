"""Every engine, as the store's own tests have it."""

from tests.store.conftest import postgres18_url, sqlite_memory_url, store_template18

__all__ = ["postgres18_url", "sqlite_memory_url", "store_template18"]
