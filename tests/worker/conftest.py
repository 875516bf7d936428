"""The engines for tests of the worker."""

from tests.store.conftest import postgres18_url, sqlite_memory_url, store_template18

__all__ = ["postgres18_url", "sqlite_memory_url", "store_template18"]
