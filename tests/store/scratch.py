"""Scripts for tests of engines. Their playground is the table of migrations: two statements, one unique key."""

from fleetcron.store.engine import Engine, Script


def put(number: int, size: int = 1) -> Script[None]:
    """A row with this number and a name of `size` characters."""
    yield "migrations_insert", {"number": number, "name": "x" * size, "checksum": "-", "program": "test"}


def numbers() -> Script[list[int]]:
    """What was put, without the real migrations."""
    rows = yield "migrations_list", {}
    return [row["number"] for row in rows if row["program"] == "test"]


async def found(engine: Engine) -> list[int]:
    return await engine.read(numbers)
