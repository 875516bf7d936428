"""Where tests are tortured, and what is there."""

import asyncio
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]


def sqlite_in(folder: Path) -> str:
    return f"sqlite:///{folder / 'jobs.db'}"


def ask(url: str, *statements: str) -> list[str]:
    """The first column of the last one."""

    async def run() -> list[str]:
        connection = await asyncpg.connect(url)
        try:
            for statement in statements:
                rows = await connection.fetch(statement)
            return [row[0] for row in rows]
        finally:
            await connection.close()

    return asyncio.run(run())


def schemas(url: str) -> set[str]:
    return set(ask(url, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'fleetcron%'"))
