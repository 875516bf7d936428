"""Every engine, as the store's own tests have it."""

from tests.store.conftest import (
    postgres16_url,
    postgres18_url,
    postgres_url,
    sqlite_file_url,
    sqlite_memory_url,
    store_template16,
    store_template18,
    store_url,
)

__all__ = [
    "postgres16_url",
    "postgres18_url",
    "postgres_url",
    "sqlite_file_url",
    "sqlite_memory_url",
    "store_template16",
    "store_template18",
    "store_url",
]
