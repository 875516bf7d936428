"""How a known-bad variant changes the code of the running process, for good: statements, and keys of tables."""

from typing import Any

from fleetcron.store.statements import Statements, parse
from tests.simulate import world


def text(name: str, *changes: tuple[str, str]) -> None:
    """Change the text of a statement; a text that is not there any more is a mistake of this file."""
    known = Statements.for_engine("sqlite")._statements
    text = ";\n".join((*known[name].before, known[name].sql))
    for old, new in changes:
        assert old in text, f"{name} has no {old!r}"
        text = text.replace(old, new)
    known[name] = parse("sqlite", name, f"-- a known-bad variant\n{text}")


def without_index(name: str) -> None:
    """The tables are made without a key, and without those that were taken from them before."""
    made = world.migrate

    async def migrate(engine: Any) -> Any:
        done = await made(engine)
        engine._database.session._open().execute(f"DROP INDEX {name}")
        return done

    put(world, "migrate", migrate)


def put(owner: object, name: str, value: object) -> None:
    """In the place of what is there."""
    assert hasattr(owner, name), f"{owner} has no {name}"
    setattr(owner, name, value)
